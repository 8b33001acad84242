package tie

import (
	"net"
	"time"
)

// lossTime is how long the machine at the other end of a tie may give no sign before the tie breaks.
const lossTime = 30 * time.Second

// noticeLoss lets conn break lossTime after the machine at its other end has vanished: also if what was said last, in the
// handshake, has not been acknowledged, so that the kernel does not ask whether the other one is there.
func noticeLoss(conn net.Conn) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: lossTime / 3, Interval: lossTime / 6, Count: 4})
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { setUserTimeout(int(fd), lossTime) }) // without it this takes longer
	}
}

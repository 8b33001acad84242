// Package keepalive lets a TCP connection end soon after the machine at its other end has vanished.
package keepalive

import (
	"net"
	"time"
)

// Limit is how long a machine may give no sign before it counts as lost.
const Limit = 30 * time.Second

// Set has conn, if it is a TCP connection, end Limit after the last sign of the other machine, whether anything is sent on it or
// not. far says that it is another machine: then conn also ends when the other process has taken nothing of what was sent to it for
// Limit. Where the system does not take these options, conn stays as it is, and a machine that has vanished is noticed later.
func Set(conn net.Conn, far bool) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: Limit / 3, Interval: Limit / 6, Count: 4})
	if far {
		setUserTimeout(c, Limit)
	}
}

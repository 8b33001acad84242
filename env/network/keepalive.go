package network

import (
	"net"
	"time"
)

// KeepAliveLimit is how long a machine may give no sign of life before it counts as lost.
const KeepAliveLimit = 30 * time.Second

// KeepAlive makes a TCP connection end KeepAliveLimit after the last sign of life of the other machine, whether or not
// anything is sent on it. If far is true, the other end is on another machine: then the connection also ends if the
// other process has read nothing for that long although something was sent. If the system does not support these
// options, the connection stays as it is, and the loss of a machine is noticed later.
func KeepAlive(conn net.Conn, far bool) {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: KeepAliveLimit / 3, Interval: KeepAliveLimit / 6, Count: 4})
	if far {
		setUserTimeout(c, KeepAliveLimit)
	}
}

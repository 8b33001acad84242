// Package keepalive makes a TCP connection end soon after the machine at its other end has vanished.
package keepalive

import (
	"net"
	"time"
)

// Limit is how long a machine may give no sign of life before it counts as lost.
const Limit = 30 * time.Second

// Set makes a TCP connection end Limit after the last sign of life of the other machine, whether or not anything is sent on it. If
// far is true, the other end is on another machine: then the connection also ends if the other process has read nothing for Limit
// although something was sent. If the system does not support these options, the connection stays as it is, and the loss of a
// machine is noticed later.
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

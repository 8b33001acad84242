//go:build !linux

package tcp

import (
	"net"
	"time"
)

// Elsewhere goroutines read and write.
func pollable(c *net.TCPConn) net.Conn { return c }

func pollableBundle(b *bundle) net.Conn { return b }

// Elsewhere the keepalives alone count, while nothing is sent.
func setUserTimeout(*net.TCPConn, time.Duration) {}

func chooseControl(*net.TCPConn) {}

func measure(*net.TCPConn) way { return way{} }

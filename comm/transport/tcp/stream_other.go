//go:build !linux

package tcp

import "net"

// Elsewhere goroutines read and write.
func pollable(c *net.TCPConn) net.Conn { return c }

func setOptions(*net.TCPConn, bool) {}

//go:build !linux

package tcp

import "net"

// Elsewhere goroutines read and write.
func pollable(c *net.TCPConn) net.Conn { return c }

func pollableBundle(b *bundle) net.Conn { return b }

func pollableSecured(c secureConn, _ net.Conn) net.Conn { return c }

func chooseControl(*net.TCPConn) {}

func measure(*net.TCPConn) way { return way{} }

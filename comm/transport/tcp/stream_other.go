//go:build !linux

package tcp

import "net"

// On systems other than Linux no stream is Pollable.
func pollable(c *net.TCPConn) net.Conn { return c }

func pollableBundle(b *bundle) net.Conn { return b }

func pollableSecured(c secureConn, _ net.Conn) net.Conn { return c }

func chooseControl(*net.TCPConn) {}

func measure(*net.TCPConn) link { return link{} }

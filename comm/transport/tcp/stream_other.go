//go:build !linux

package tcp

import "net"

// pollable returns stream: on systems other than Linux none is Pollable.
func pollable(_ *bundle, stream net.Conn) net.Conn { return stream }

func chooseControl(*net.TCPConn) {}
func limitUnsent(*net.TCPConn)   {}

func measure(*net.TCPConn) link { return link{} }

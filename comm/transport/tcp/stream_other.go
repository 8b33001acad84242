//go:build !linux

package tcp

import (
	"net"
	"syscall"
)

// pollable returns stream: on systems other than Linux none is Pollable.
func pollable(_ *bundle, stream net.Conn) net.Conn { return stream }

// WithoutBBR does nothing: other systems have no BBR.
func WithoutBBR(string, string, syscall.RawConn) error { return nil }

func chooseControl(*net.TCPConn) {}
func limitUnsent(*net.TCPConn)   {}

func measure(*net.TCPConn) link { return link{} }

//go:build !linux

package tcp

import (
	"net"
	"syscall"
	"time"
)

// pollable returns stream: on systems other than Linux none is Pollable.
func pollable(_ *bundle, stream net.Conn) net.Conn { return stream }

// WithoutBBR does nothing: other systems choose for themselves.
func WithoutBBR(string, string, syscall.RawConn) error { return nil }

func chooseControl(*net.TCPConn, time.Duration) {}
func limitUnsent(*net.TCPConn)                  {}

func measure(*net.TCPConn) link { return link{} }

package admission

import (
	"net"
	"syscall"
)

// deferTime is for how many seconds the kernel keeps a silent connection to itself. Then the Listener accepts it like any other.
const deferTime = 60

// deferAccept has the kernel keep silent connections to itself, up to net.core.somaxconn (4,096, as a rule). They take no
// descriptor, and no time of this process. A connection that speaks is accepted as before.
func deferAccept(l net.Listener) {
	if s, ok := l.(*net.TCPListener); ok {
		if c, err := s.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, deferTime) // if it fails, silent connections cost more
			})
		}
	}
}

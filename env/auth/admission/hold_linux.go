package admission

import (
	"net"
	"syscall"
)

// holdTime is how many seconds the kernel keeps a connection that says nothing to itself. Then it is accepted, and treated as any
// other.
const holdTime = 60

// holdSilent has the kernel keep connections that say nothing to itself: as many as net.core.somaxconn (4,096, as a rule). They
// take no descriptor, and no time of this process. Others come as they do without it.
func holdSilent(l net.Listener) {
	if s, ok := l.(*net.TCPListener); ok {
		if c, err := s.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, holdTime) // without it they cost more
			})
		}
	}
}

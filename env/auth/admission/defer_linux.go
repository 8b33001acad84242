package admission

import (
	"net"
	"syscall"
)

// deferTime is how many seconds the kernel holds back a silent connection. After that, the Listener accepts it like any other.
const deferTime = 60

// deferAccept makes the kernel hold back silent connections, up to net.core.somaxconn (usually 4,096). They take neither
// a descriptor nor time of this process. A connection that sends something is accepted as before.
func deferAccept(l net.Listener) {
	if s, ok := l.(*net.TCPListener); ok {
		if c, err := s.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, deferTime) // if it fails, silent connections cost more
			})
		}
	}
}

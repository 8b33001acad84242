// Package machine says what processes have in common: the kernel that they run on, a network, and a name space of
// process numbers. Names and addresses do not say that: two machines may have the same name, one machine may have
// several names, and containers have their own.
package machine

import "net"

// A Place is where a process runs. It is only good to compare with another one.
type Place struct {
	Kernel    string `json:"kernel,omitempty"` // identifies one boot of it; empty: not known
	Network   string `json:"network,omitempty"`
	Processes string `json:"processes,omitempty"`
}

// SameKernel reports whether processes run on the same kernel, and so on the same processors.
func (p Place) SameKernel(other Place) bool { return p.Kernel != "" && p.Kernel == other.Kernel }

// SameNetwork reports whether processes run on the same processors and have the same network: they share loopback
// addresses and abstract Unix sockets, so that one can pass memory to the other.
func (p Place) SameNetwork(other Place) bool {
	return p.SameKernel(other) && p.Network != "" && p.Network == other.Network
}

// SameProcesses reports whether process numbers mean the same to both.
func (p Place) SameProcesses(other Place) bool {
	return p.SameKernel(other) && p.Processes != "" && p.Processes == other.Processes
}

// Inside reports whether the bytes of conn, a TCP connection, stay in one network of one kernel. Both ends see the same
// addresses, so they agree. The places of the processes do not tell: packets to the own machine may take a way through
// other machines.
func Inside(conn net.Conn) bool {
	here, ok1 := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	return ok1 && ok2 && (here.IP.Equal(there.IP) || here.IP.IsLoopback() && there.IP.IsLoopback())
}

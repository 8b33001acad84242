// Package machine says what processes have in common: the kernel that they run on, a network, and the numbers of processes. Names
// and addresses do not say that: two machines may have one name, one machine may have several, and containers have their own.
package machine

import "net"

// A Place is where a process runs. It means something to others by comparison.
type Place struct {
	Kernel    string `json:"kernel,omitempty"` // since it was started; empty: not known
	Network   string `json:"network,omitempty"`
	Processes string `json:"processes,omitempty"`
}

// SameKernel reports whether processes run on the same processors.
func (p Place) SameKernel(other Place) bool { return p.Kernel != "" && p.Kernel == other.Kernel }

// SameNetwork reports whether processes have one network besides: loopback and abstract Unix sockets of one are the other's, and so
// one can hand the other memory.
func (p Place) SameNetwork(other Place) bool {
	return p.SameKernel(other) && p.Network != "" && p.Network == other.Network
}

// SameProcesses reports whether the number of a process means the same to both.
func (p Place) SameProcesses(other Place) bool {
	return p.SameKernel(other) && p.Processes != "" && p.Processes == other.Processes
}

// Inside reports whether what goes over conn, which is of TCP, stays in one network of one kernel. Both ends see the same addresses,
// so they agree. Where processes run does not answer that: what is addressed to one's own machine may go by way of others.
func Inside(conn net.Conn) bool {
	here, ok1 := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	return ok1 && ok2 && (here.IP.Equal(there.IP) || here.IP.IsLoopback() && there.IP.IsLoopback())
}

package rendezvous

// A Port is a reserved TCP port: until Close, nothing else gets it by chance.
type Port interface {
	Number() int
	Close() error
}

// A ReserveFunc reserves a port of this machine on host ("" is every address); port 0 asks for any free one.
type ReserveFunc func(host string, port int) (Port, error)

// Reserve reserves m's port at the address where rank 0 will bind it; port 0 asks for any free port. A loopback address is
// bound as it is. Otherwise all addresses of the machine are: m.Addr need not belong to an interface (a service, a NAT).
func (m Master) Reserve(f ReserveFunc) (Port, error) {
	if (Endpoint{Host: m.Addr}).IsLoopback() {
		return f(m.Addr, m.Port)
	}
	return f("", m.Port)
}

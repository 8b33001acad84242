package rendezvous

// A Port is a reserved TCP port: until Close, nothing else gets it by chance.
type Port interface {
	Number() int
	Close() error
}

// A ReserveFunc reserves a port of this machine on host ("" is every address); port 0 asks for any free one.
type ReserveFunc func(host string, port int) (Port, error)

// Reserve reserves m's port at the address where rank 0 will bind it; port 0 asks for any free port.
func (m Master) Reserve(f ReserveFunc) (Port, error) { return f(m.BindHost(), m.Port) }

// BindHost returns the address at which the machine that others call m.Addr listens; empty: all of its addresses. A
// loopback address is bound as it is. Other addresses need not belong to an interface (a service, a NAT).
func (m Master) BindHost() string {
	if (Endpoint{Host: m.Addr}).IsLoopback() {
		return m.Addr
	}
	return ""
}

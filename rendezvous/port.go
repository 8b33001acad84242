package rendezvous

// A Port is a reserved TCP port: nothing else gets it by chance until Close.
type Port interface {
	Number() int
	Close() error
}

// A ReserveFunc reserves a port of this machine on host ("" is every address); port 0 asks for any free one.
type ReserveFunc func(host string, port int) (Port, error)

// Reserve holds m's port where rank 0 will bind it; port 0 asks for any free one.
func (m Master) Reserve(f ReserveFunc) (Port, error) { return f(m.BindHost(), m.Port) }

// BindHost is the address at which a machine listens that others call m.Addr; empty: all it has. A loopback address is
// bound as it is. Any other need not be the address of an interface (a service, a NAT).
func (m Master) BindHost() string {
	if (Endpoint{Host: m.Addr}).IsLoopback() {
		return m.Addr
	}
	return ""
}

package rendezvous

// Reserve holds a port of this machine for rank 0, which others call m.Addr; m.Port 0 asks for any free one.
func (m Master) Reserve(f ReserveFunc) (Port, error) { return reserve(f, m) }

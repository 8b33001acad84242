package launch

import (
	"context"
	"net/netip"
	"time"

	"github.com/gorun/gorun/env/addr"
)

// An Endpoint is where nodes meet: an address of a host, and a port on which nobody listens there.
type Endpoint struct {
	Addr string // a name or an IP address
	Port int
}

// lookupTimeout limits what finds the address of this machine: the name server may not answer.
const lookupTimeout = 2 * time.Second

// meetingPoints returns the endpoints of the hosts that the state machine has chosen.
func (l *launcher) meetingPoints() (list []Endpoint) {
	other := "" // another machine
	for i := range l.machine.nodes {
		if a := l.machine.nodes[i].hello.Addr; other == "" && !isLoopback(a) {
			other = a
		}
		if other == "" && !l.IsSelf[i] && l.machine.nodes[i].hello.Addr == "" {
			other = l.Names[i]
		}
	}
	own := func() string {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
		defer cancel()
		if a, err := addr.Facing(ctx, other); other != "" && err == nil {
			return a.String()
		}
		return "127.0.0.1"
	}
	for _, i := range l.machine.endpoints {
		n := &l.machine.nodes[i]
		e := Endpoint{Addr: n.hello.Addr, Port: n.hello.Port}
		switch {
		case l.IsSelf[i] || isLoopback(e.Addr) && other != "":
			e.Addr = own()
		case e.Addr == "":
			e.Addr = l.Hosts[i].Name
		}
		list = append(list, e)
	}
	return list
}

// usable returns the IP address in a text, or nothing if it contains none, or one at which others cannot reach the machine that has it: a
// link-local address is another machine's elsewhere.
func usable(text string) string {
	a, err := netip.ParseAddr(text)
	if err != nil || a.IsLinkLocalUnicast() || a.IsUnspecified() {
		return ""
	}
	return a.Unmap().String()
}

// isLoopback reports whether an address is one that no other machine can reach, or none at all.
func isLoopback(text string) bool {
	a, err := netip.ParseAddr(text)
	return err != nil || a.IsLoopback()
}

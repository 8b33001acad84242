package launch

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

// lookupTimeout limits what finds the address of this machine: the name server may not answer.
const lookupTimeout = 2 * time.Second

// meetingPoints returns the endpoints of the hosts that the state machine has chosen.
func (l *launcher) meetingPoints() (list []rendezvous.Endpoint) {
	own := "" // the address of this machine; empty: all hosts are this machine
	if i := slices.IndexFunc(l.machine.nodes, isElsewhere); i >= 0 {
		own = ownAddr(l.machine.nodes[i].hello.Addr)
	}
	for _, i := range l.machine.endpoints {
		hello := &l.machine.nodes[i].hello
		e := rendezvous.Endpoint{Host: hello.Addr, Port: hello.Port}
		if own != "" && e.IsLoopback() {
			e.Host = own
		}
		list = append(list, e)
	}
	return list
}

// ownAddr returns the address of this machine at which another one is likely to reach it.
func ownAddr(other string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	a, err := network.FacingAddr(ctx, other)
	if err != nil { // the name means something only where it is
		a, _, err = network.OutwardAddr(ctx)
	}
	if err != nil {
		return "127.0.0.1"
	}
	return a.String()
}

// addrOf returns where others reach a host whose proxy has given an address. It is loopback if the host is this machine.
func (l *launcher) addrOf(host int, text string) string {
	switch a := usable(text); {
	case l.IsSelf[host]:
		return "127.0.0.1"
	case a == "":
		return l.Hosts[host].Name
	default:
		return a
	}
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

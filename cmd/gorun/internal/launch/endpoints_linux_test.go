package launch

import (
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/rendezvous"
)

// TestMeetingPoints: nodes meet where all of them can.
func TestMeetingPoints(t *testing.T) {
	const self = "10.79.0.1" // the address of this machine on the way to 10.79.0.0/24
	host := hosttest.New(t, 1).Host(0)
	for _, k := range []struct {
		names, addrs []string // addrs: what their proxies say
		want         string
	}{
		{[]string{"a", "b"}, []string{"10.79.0.8", "10.79.0.9"}, "10.79.0.8"},
		{[]string{"localhost", "b"}, []string{"192.168.7.7", "10.79.0.9"}, self},
		{[]string{"localhost", "10.79.0.9"}, []string{"", ""}, self},
		{[]string{"localhost", "localhost"}, []string{"", ""}, "127.0.0.1"},
		{[]string{"a", "b"}, []string{"127.0.0.1", "127.0.0.1"}, "127.0.0.1"}, // a remote shell that stays here
		{[]string{"a", "b"}, []string{"127.0.0.1", "10.79.0.9"}, self},
		{[]string{"a", "b"}, []string{"", ""}, "a"}, // there is no sshd that says its address
		{[]string{"a", "b"}, []string{"fe80::1", "10.79.0.9"}, "a"},
	} {
		l := &launcher{hosts: make([]remoteHost, len(k.names))}
		for _, name := range k.names {
			l.Hosts, l.IsSelf = append(l.Hosts, manager.Host{Name: name}), append(l.IsSelf, name == "localhost")
		}
		l.machine = newStateMachine(Rules{Hosts: l.Hosts, Least: len(k.names), Meets: true}, time.Now())
		for i := range k.names {
			l.machine.Step(said{i, frame.Hello{Addr: l.addrOf(i, k.addrs[i]), Port: 20000}}, time.Now())
		}
		var got []rendezvous.Endpoint
		host.Do(func() { got = l.meetingPoints() })
		if want := []rendezvous.Endpoint{{Host: k.want, Port: 20000}}; !slices.Equal(got, want) {
			t.Errorf("%v at %v meet at %v, want %v", k.names, k.addrs, got, want)
		}
	}
}

func TestUsable(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "fd00::1": "fd00::1", "::ffff:10.0.0.1": "10.0.0.1", "127.0.0.1": "127.0.0.1",
		"fe80::1%eth0": "", "169.254.0.1": "", "0.0.0.0": "", "::": "", "": "", "node1": "",
	} {
		if got := usable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

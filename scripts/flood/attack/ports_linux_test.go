package attack

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestPorts(t *testing.T) {
	var want []Port
	listen := func(network, address string) net.Addr {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l.Addr()
	}
	for _, l := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", t.TempDir() + "/path"}, {"unix", "@gorun/flood/" + t.Name()}} {
		at := listen(l[0], l[1])
		want = append(want, Port{at.Network(), at.String()})
	}
	_, port, _ := net.SplitHostPort(listen("tcp", ":0").String())
	want = append(want, Port{"tcp", net.JoinHostPort("127.0.0.1", port)})

	connected, err := net.Dial("tcp", want[0].Address) // is no port to attack
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connected.Close() }()
	found := Ports(os.Getpid())
	for _, p := range want {
		if !slices.Contains(found, p) {
			t.Errorf("%v is not found", p)
		}
	}
	if len(found) != len(want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

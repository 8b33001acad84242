package network

import (
	"os"
	"testing"
)

// TestReservedPortLasts: two reservations differ, and no outgoing connection can be given such a port.
func TestReservedPortLasts(t *testing.T) {
	text, err := os.ReadFile(portRange)
	if err != nil {
		t.Fatal(err)
	}
	first, count := lastingPorts(string(text))
	const reserved = 200
	if count < 5*reserved {
		t.Skipf("outgoing connections have %s: it may have to let the system choose", text)
	}
	seen := make(map[int]bool)
	for range reserved {
		p := mustReserve(t, "127.0.0.1", 0)
		if n := p.Number(); seen[n] || n < first || n >= first+count {
			t.Fatalf("port %d: reserved before: %t; outgoing connections have %s", n, seen[n], text)
		}
		seen[p.Number()] = true
	}
}

func TestLastingPorts(t *testing.T) {
	for text, want := range map[string][2]int{
		"32768\t60999\n": {10000, 22768}, "": {10000, 22768}, "nonsense": {10000, 22768}, "1024 x": {10000, 22768},
		"1024 29999": {30000, 35535}, "15000 60999": {10000, 5000}, "1024 65533": {65534, 1}, "10001 65535": {10000, 1},
		"1024 5000": {10000, 55535},
	} {
		if first, count := lastingPorts(text); [2]int{first, count} != want {
			t.Errorf("%q: from %d on, %d, want %d", text, first, count, want)
		}
	}
	for _, text := range []string{"1024 65535", "1024 65534", "10000 65535"} {
		if first, count := lastingPorts(text); count != 0 {
			t.Errorf("%q: from %d on, %d", text, first, count)
		}
	}
}

package admission

import (
	"net"
	"testing"
)

// TestSilentAreHeldBack: connections over TCP that say nothing cost the server no descriptor and no time. Who speaks gets in at once.
func TestSilentAreHeldBack(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, inner, Config{Limit: 8})
	for range 100 { // fewer than the kernel keeps anywhere
		dial(t, s)
	}
	for range 10 {
		c, err := member(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	if !s.has(0) || s.log.String() != "" {
		t.Errorf("silent connections were accepted; the log has\n%s", s.log.String())
	}
}

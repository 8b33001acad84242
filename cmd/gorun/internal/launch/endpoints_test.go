package launch

import "testing"

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

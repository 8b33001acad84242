package first

import (
	"strings"
	"testing"
)

func TestMayRun(t *testing.T) {
	for _, c := range []struct {
		args string
		want bool
	}{
		{"./train", true},
		{"--nproc-per-node=2 ./train --help", true},
		{"--nproc-per-node 2 ./train", true},
		{"bench all_reduce", true},
		{"bench-worker {}", false},
		{"--version", false},
		{"", false},
	} {
		if got := mayRun(strings.Fields(c.args)); got != c.want {
			t.Errorf("%s: %t", c.args, got)
		}
	}
}

package testkit_test

import (
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

var kept []byte

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestAllocatesAtMost(t *testing.T) {
	for _, c := range []struct {
		limit, takes int
		fails        bool
	}{{0, 1 << 10, false}, {8 << 20, 8 << 20, false}, {1 << 20, 8 << 20, true}} {
		r := recorder{TB: t}
		testkit.AllocatesAtMost(&r, c.limit, func() { kept = make([]byte, c.takes) })
		if r.failed != c.fails {
			t.Errorf("%d bytes, of which %d are allowed: failed %v", c.takes, c.limit, r.failed)
		}
	}
}

package core

import (
	"testing"

	"github.com/gorun/gorun/comm/internal/call"
)

// TestRemember: a full cache keeps what it has, until another key comes.
func TestRemember(t *testing.T) {
	var m map[call.Packed]int
	key := func(i int) call.Packed { return call.Packed{Count: uint64(i)} }
	for i := range mostPlans {
		m = remember(m, key(i), i)
	}
	if m = remember(m, key(1), 1); len(m) != mostPlans {
		t.Errorf("%d of %d entries are left", len(m), mostPlans)
	}
	if m = remember(m, key(mostPlans), 0); len(m) != 1 {
		t.Errorf("%d entries, want only the new one", len(m))
	}
}

package bootstrap

import (
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/store/memstore"
)

// TestClaim: a rank belongs to one process, which may have it again once it has left.
func TestClaim(t *testing.T) {
	s, p := memstore.New(), place{rank: 1, size: 2, meet: "the store"}
	one, other := &claims{taken: map[string]bool{}}, &claims{taken: map[string]bool{}}
	_, leave, err := one.claim(t.Context(), s, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by   *claims
		want string
	}{
		{one, "it was called twice: as rank 1 at the store, use the world"},
		{other, "rank 1 has joined already at the store: two processes have RANK=1"},
	} {
		if _, _, err := c.by.claim(t.Context(), s, p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	leave()
	if generation, _, err := one.claim(t.Context(), s, p); err != nil || generation != 2 {
		t.Errorf("generation %d, %v", generation, err)
	}
}

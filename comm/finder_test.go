package comm

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// What another rank has found out is told with that rank's number; what this one has is not.
func TestFindersAreNamed(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		if g.Rank() != 1 {
			return nil
		}
		for _, f := range []*endpoint.Failure{
			{Kind: endpoint.PeerFailed, Rank: 2, Text: "died"},
			{Kind: endpoint.Absent, Missing: []int{2}, Text: "Barrier #3", After: time.Second},
		} {
			if said := g.failure("Barrier", 3, 0, f).Error(); strings.Contains(said, "found") {
				t.Errorf("of its own finding a rank says %q", said)
			}
			f.Told, f.Finder = true, 0
			if said, want := g.failure("Barrier", 3, 0, f).Error(), "comm: Barrier #3: rank 0 found: "; !strings.HasPrefix(said, want) {
				t.Errorf("of another's finding a rank says %q, want %q first", said, want)
			}
		}
		return nil
	})
}

package comm

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// What another rank has found out is told with that rank's number; what this one has is not.
func TestFindersAreNamed(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		if g.Rank() != 1 {
			return nil
		}
		told := func(f *diagnosis.Failure) string {
			return public(&core.Error{Group: g.core, Op: "Barrier", Seq: 3, Err: f}).Error()
		}
		for _, f := range []*diagnosis.Failure{
			{Kind: diagnosis.PeerFailed, Rank: 2, Text: "died"},
			{Kind: diagnosis.Absent, Missing: []int{2}, Text: "Barrier #3", After: time.Second},
		} {
			if said := told(f); strings.Contains(said, "found") {
				t.Errorf("of its own finding a rank says %q", said)
			}
			f.Remote, f.Finder = true, 0
			if said, want := told(f), "comm: Barrier #3: rank 0 found: "; !strings.HasPrefix(said, want) {
				t.Errorf("of another's finding a rank says %q, want %q first", said, want)
			}
		}
		return nil
	})
}

package plan

import "testing"

// TestLimits: which algorithms there are between machines and on one, and up to how many bytes. Measurements beside the limits say why.
func TestLimits(t *testing.T) {
	near := NewChoices(WaysNearby, nil)
	for _, c := range []struct {
		op             string
		ranks          int
		between, onOne string
	}{
		{"all_reduce", 2, "doubling:256K,halving:512K,ring", "doubling:256K,halving:1M,ring"},
		{"all_reduce", 3, "doubling:16K,halving:512K,ring:2M,bidirectional", "doubling:64K,halving:1M,ring"},
		{"all_reduce", 8, "doubling:16K,halving:512K,ring:2M,bidirectional", "doubling:64K,halving:1M,ring"},
		{"reduce", 2, "binomial", "binomial"},
		{"reduce", 3, "binomial:64K,pipeline", "binomial:2M,pipeline"},
		{"reduce", 4, "binomial:64K,pipeline", "binomial:3M,pipeline"},
		{"reduce", 8, "binomial:71619,pipeline", "binomial:4M,pipeline"},
		{"reduce", 16, "binomial:97975,pipeline", "binomial:5M,pipeline"},
		{"broadcast", 32, "binomial:145868,pipeline", "binomial:8M,pipeline"},
		{"reduce", 64, "binomial:227813,pipeline", "binomial:13M,pipeline"},
		{"all_gather", 2, "bruck:80K,ring", "bruck:80K,ring"},
		{"all_gather", 7, "bruck:80K,bidirectional", "bruck:80K,ring"},
		{"all_gather", 8, "doubling:256K,bidirectional", "doubling:128K,ring"},
		{"reduce_scatter", 2, "pairwise", "pairwise"},
		{"reduce_scatter", 4, "halving:256K,pipeline", "halving:256K,pairwise"},
		{"reduce_scatter", 7, "halving:1K,pairwise:448K,pipeline", "halving:1K,pairwise"},
		{"reduce_scatter", 8, "halving:256K,pairwise:512K,pipeline", "halving:256K,pairwise"},
	} {
		if got := chosen.Choice(c.op, c.ranks).String(); got != c.between {
			t.Errorf("%s of %d ranks between machines: %s, want %s", c.op, c.ranks, got, c.between)
		}
		if got := near.Choice(c.op, c.ranks).String(); got != c.onOne {
			t.Errorf("%s of %d ranks on one machine: %s, want %s", c.op, c.ranks, got, c.onOne)
		}
	}
}

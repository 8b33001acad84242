package hang

import (
	"testing"
	"time"
)

func TestStraggler(t *testing.T) {
	const ms = time.Millisecond
	operations := func(rank int, each time.Duration, count uint64) pace {
		return pace{rank, "operations g", "operation", each, count}
	}
	other := func(p pace) pace { p.group = "operations h"; return p }
	for _, c := range []struct {
		name  string
		paces []pace
		want  string
	}{
		{"none", nil, ""},
		{"alone", []pace{operations(0, time.Second, 100)}, ""},
		{"alike", []pace{operations(0, 10*ms, 100), operations(1, 14*ms, 100), operations(2, 9*ms, 100)}, ""},
		{"one of three", []pace{operations(0, 10*ms, 100), operations(1, 30*ms, 101), operations(2, 11*ms, 100)},
			"rank 1 is slower than the other ranks of this node by a factor of 2.7: it takes 30ms from one operation to the next, and they 11ms, over the last 101"},
		{"one of two", []pace{operations(0, 2*ms, 100), operations(1, 1*ms, 100)},
			"rank 0 is slower than the other ranks of this node by a factor of 2.0: it takes 2ms from one operation to the next, and they 1ms, over the last 100"},
		{"the slowest of several", []pace{operations(0, 10*ms, 100), operations(1, 10*ms, 100), operations(2, 10*ms, 100), operations(3, 40*ms, 90), operations(4, 50*ms, 100)},
			"rank 4 is slower than the other ranks of this node by a factor of 5.0: it takes 50ms from one operation to the next, and they 10ms, over the last 100"},
		{"all are slow but one", []pace{operations(0, 1*ms, 100), operations(1, 40*ms, 100), operations(2, 41*ms, 100)}, ""},
		{"few operations", []pace{operations(0, 1*ms, 100), operations(1, 40*ms, 19)}, ""},
		{"so little time that it does not matter", []pace{operations(0, 1000, 100), operations(1, 90_000, 100)}, ""},
		{"others do nothing between operations", []pace{operations(0, 0, 100), operations(1, ms, 100)},
			"rank 1 is slower than the other ranks of this node by a factor of 1000.0: it takes 1ms from one operation to the next, and they 0s, over the last 100"},
		{"in other groups", []pace{operations(0, 1*ms, 100), other(operations(1, 40*ms, 100))}, ""},
		{"in the worst group", []pace{operations(0, 10*ms, 100), operations(1, 20*ms, 100), other(operations(2, 10*ms, 100)), other(operations(3, 30*ms, 100))},
			"rank 3 is slower than the other ranks of this node by a factor of 3.0: it takes 30ms from one operation to the next, and they 10ms, over the last 100"},
	} {
		if got := straggler(c.paces); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestTally(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		of   tally
		want pace
		ok   bool
	}{
		{"nothing", tally{looks: 100}, pace{}, false},
		{"operations", tally{group: "g", first: 10, last: 110, medians: []time.Duration{5 * ms, 1 * ms, 3 * ms}}, pace{2, "operations g", "operation", 3 * ms, 100}, true},
		{"too few looks", tally{group: "g", first: 10, last: 110, medians: []time.Duration{5 * ms, 1 * ms}, changes: 5, looks: 100}, pace{}, false},
		{"steps", tally{first: 10, last: 40, changes: 5, looks: 100}, pace{2, "steps", "step", 2 * time.Second, 30}, true},
		{"reports", tally{changes: 30, looks: 1000}, pace{2, "reports", "report", 2 * time.Second, 30}, true},
		{"more reports than were seen", tally{changes: 900, looks: 1000}, pace{}, false},
	} {
		if got, ok := c.of.pace(2, time.Minute); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", c.name, got, ok)
		}
	}
}

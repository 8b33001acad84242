// Package choice says by which algorithm ranks carry out a collective. It has all algorithms, a table of them for each
// kind of surroundings, and a user's tuning, which overrules the table. A choice depends only on the table, the
// operation, the number of ranks and the length of the buffer. So it is the same on every rank.
//
// Bytes are those of the whole buffer: the buffer of all_reduce, reduce and broadcast, the output of all_gather and
// gather, and the input of reduce_scatter, all_to_all and scatter.
package choice

import (
	"fmt"
	"math"
	"strings"
)

// Any is the limit of an algorithm without a limit. Never is that of one that is not used.
const (
	Any   = math.MaxInt
	Never = -1
)

// A Way is an algorithm for buffers of at most UpTo bytes.
type Way struct {
	Algorithm
	UpTo int
}

// A Choice has ways in order of length. The last one has no limit.
type Choice []Way

// String returns c as it is written in a tuning.
func (c Choice) String() string {
	var b strings.Builder
	for i, w := range c {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(w.Algorithm))
		if w.UpTo != Any {
			fmt.Fprintf(&b, ":%s", Bytes(w.UpTo))
		}
	}
	return b.String()
}

// Pick returns the way for so many bytes.
func (c Choice) Pick(bytes int) Algorithm {
	for i := range c {
		if bytes <= c[i].UpTo {
			return c[i].Algorithm
		}
	}
	return ""
}

// A Chooser chooses by a table, which a tuning overrules.
type Chooser struct {
	*Table
	Tuning
}

// Pick returns the algorithm for so many ranks and bytes. It is empty if the table does not have the operation.
func (c Chooser) Pick(op string, ranks, bytes int) Algorithm {
	other := c.tuned(op, ranks)
	for _, r := range c.Rows[op] {
		if (other == nil || r.isFixed()) && bytes <= r.UpTo.of(ranks) {
			return r.Algorithm
		}
	}
	return other.Pick(bytes)
}

// Choice returns the algorithms that Pick picks from.
func (c Chooser) Choice(op string, ranks int) (ways Choice) {
	add := func(w Way) {
		if n := len(ways); w.UpTo >= 0 && (n == 0 || w.UpTo > ways[n-1].UpTo) {
			ways = append(ways, w)
		}
	}
	other := c.tuned(op, ranks)
	for _, r := range c.Rows[op] {
		if other == nil || r.isFixed() {
			add(Way{r.Algorithm, r.UpTo.of(ranks)})
		}
	}
	for _, w := range other {
		add(w)
	}
	return ways
}

// IsTuned reports whether the tuning overrules the table for op.
func (c Chooser) IsTuned(op string, ranks int) bool { return c.tuned(op, ranks) != nil }

// tuned returns the tuning's choice for op, if it names ways of the table.
func (c Chooser) tuned(op string, ranks int) Choice {
	if len(c.Tuning) == 0 {
		return nil
	}
	for _, n := range [...]int{ranks, anyRanks} {
		for i := range c.Tuning {
			if r := &c.Tuning[i]; r.op == op && r.ranks == n && c.What(op, r.ways[0].Algorithm) != "" {
				return r.ways
			}
		}
	}
	return nil
}

// Bytes writes a number of bytes as 512, 4K or 1M.
func Bytes(n int) string {
	switch {
	case n == Any:
		return "any"
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dM", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dK", n>>10)
	}
	return fmt.Sprint(n)
}

// Package choice says by which algorithm ranks carry out a collective. It has all algorithms, a literal table of them and
// of sizes for each kind of surroundings, and a user's tuning, which overrules the table. A choice depends only on the
// table, the operation, the number of ranks and the length of the buffer. So it is the same on every rank.
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

// Ways are several ways, in order of length. The last one has no limit.
type Ways []Way

// String returns w as it is written in a tuning.
func (w Ways) String() string {
	var b strings.Builder
	for i, way := range w {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(way.Algorithm))
		if way.UpTo != Any {
			fmt.Fprintf(&b, ":%s", Bytes(way.UpTo))
		}
	}
	return b.String()
}

// Pick returns the way for so many bytes.
func (w Ways) Pick(bytes int) Algorithm {
	for i := range w {
		if bytes <= w[i].UpTo {
			return w[i].Algorithm
		}
	}
	return ""
}

// A Chooser chooses by a table, which a tuning overrules.
type Chooser struct {
	*Table
	Tuning
}

// Choose returns the algorithm for so many ranks and bytes. It is empty if the table does not have the operation.
func (c Chooser) Choose(op string, ranks, bytes int) (chosen Algorithm) {
	c.each(op, ranks, func(w Way) (more bool) {
		if bytes <= w.UpTo {
			chosen = w.Algorithm
		}
		return chosen == ""
	})
	return chosen
}

// Ways returns the ways among which Choose chooses.
func (c Chooser) Ways(op string, ranks int) (ways Ways) {
	c.each(op, ranks, func(w Way) (more bool) {
		if n := len(ways); w.UpTo >= 0 && (n == 0 || w.UpTo > ways[n-1].UpTo) {
			ways = append(ways, w)
		}
		return w.UpTo != Any
	})
	return ways
}

// each calls yield with the ways of op until it returns false: with the rows that no tuning overrules, with those of the
// tuning, and with the other rows. The first one with room for a buffer is chosen.
func (c Chooser) each(op string, ranks int, yield func(Way) (more bool)) {
	rows, tuned := c.Rows[op], c.tuned(op, ranks)
	for _, r := range rows {
		if (tuned == nil || r.isFixed()) && !yield(Way{r.Algorithm, r.UpTo.of(ranks)}) {
			return
		}
	}
	for _, w := range tuned {
		if !yield(Way{w.Algorithm, min(w.UpTo, w.most(op, ranks))}) {
			return
		}
	}
	for _, r := range rows {
		if tuned != nil && !yield(Way{r.Algorithm, r.UpTo.of(ranks)}) {
			return
		}
	}
}

// IsTuned reports whether the tuning overrules the table for op.
func (c Chooser) IsTuned(op string, ranks int) bool { return c.tuned(op, ranks) != nil }

// tuned returns the tuning's ways of op, if they are ways of the table.
func (c Chooser) tuned(op string, ranks int) Ways {
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

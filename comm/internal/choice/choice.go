// Package choice says by which algorithm, or way, ranks carry out a collective. Packages that have algorithms keep
// tables of them, and a user's tuning overrules these. A choice depends only on the operation, the number of ranks and
// the length of the buffer. So it is the same on every rank.
//
// Bytes are those of the whole buffer: the buffer of all_reduce, reduce and broadcast, the output of all_gather and
// gather, and the input of reduce_scatter, all_to_all and scatter.
package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Any is the limit of a way without a limit. Never is that of a way that is used only if a tuning names it: so every
// way must work for any number of ranks and bytes.
const (
	Any   = math.MaxInt
	Never = -1
)

// A Line of a table is a way of an operation. The lines of one operation are in order of length. The first one whose
// limit is not less than the bytes of a buffer is chosen.
type Line struct {
	Op, Way string
	What    string              // explains the way to users
	UpTo    func(ranks int) int // the limit in bytes; nil: Any
	Fixed   bool                // tuning does not overrule it
}

func (l *Line) upTo(ranks int) int {
	if l.UpTo == nil {
		return Any
	}
	return l.UpTo(ranks)
}

// A Table has the ways of operations.
type Table []Line

// line returns the line of a way, or nil.
func (t Table) line(op, way string) *Line {
	i := slices.IndexFunc(t, func(l Line) bool { return l.Op == op && l.Way == way })
	if i < 0 {
		return nil
	}
	return &t[i]
}

// A Way is an algorithm for buffers of at most UpTo bytes.
type Way struct {
	Name string
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
		b.WriteString(w.Name)
		if w.UpTo != Any {
			fmt.Fprintf(&b, ":%s", Bytes(w.UpTo))
		}
	}
	return b.String()
}

// Pick returns the way for so many bytes.
func (c Choice) Pick(bytes int) string {
	for i := range c {
		if bytes <= c[i].UpTo {
			return c[i].Name
		}
	}
	return ""
}

// A Chooser chooses by a table, which a tuning overrules.
type Chooser struct {
	Table
	Tuning
}

// Pick returns the way for so many ranks and bytes. It is empty if the table does not have the operation.
func (c Chooser) Pick(op string, ranks, bytes int) string {
	other := c.tuned(op, ranks)
	for i := range c.Table {
		if l := &c.Table[i]; l.Op == op && (l.Fixed || other == nil) && bytes <= l.upTo(ranks) {
			return l.Way
		}
	}
	return other.Pick(bytes)
}

// Choice returns the ways that Pick picks from.
func (c Chooser) Choice(op string, ranks int) Choice {
	var ways Choice
	other := c.tuned(op, ranks)
	add := func(w Way) {
		if n := len(ways); w.UpTo >= 0 && (n == 0 || w.UpTo > ways[n-1].UpTo) {
			ways = append(ways, w)
		}
	}
	for i := range c.Table {
		if l := &c.Table[i]; l.Op == op && (l.Fixed || other == nil) {
			add(Way{l.Way, l.upTo(ranks)})
		}
	}
	for _, w := range other {
		add(w)
	}
	return ways
}

// Free returns the ways of op that a tuning may name.
func (t Table) Free(op string) []string {
	var names []string
	for i := range t {
		if t[i].Op == op && !t[i].Fixed {
			names = append(names, t[i].Way)
		}
	}
	return names
}

// What explains a way.
func (c Chooser) What(op, way string) string { return c.line(op, way).What }

// IsTuned reports whether the tuning overrules the table for op.
func (c Chooser) IsTuned(op string, ranks int) bool { return c.tuned(op, ranks) != nil }

// tuned returns the tuning's choice for op, if it names ways of the table.
func (c Chooser) tuned(op string, ranks int) Choice {
	if len(c.Tuning) == 0 {
		return nil
	}
	for _, n := range [...]int{ranks, anyRanks} {
		for i := range c.Tuning {
			if r := &c.Tuning[i]; r.op == op && r.ranks == n && c.line(op, r.ways[0].Name) != nil {
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

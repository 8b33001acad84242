// Package choice says by which algorithm, or way, ranks carry out a collective: tables that whoever has the ways keeps, and a
// user's tuning, which overrules them. A choice depends on nothing but the operation, the number of ranks and the length of
// the buffer, so every rank makes the same.
//
// Bytes are those of the whole buffer: what all_reduce, reduce and broadcast have in place, what all_gather and gather collect,
// what reduce_scatter, all_to_all and scatter give.
package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Any is the limit of a way that has none, Never that of one that does not come into question.
const (
	Any   = math.MaxInt
	Never = -1
)

// A Line of a table is a way of an operation. The lines of one operation are in order of length: the first with a limit of
// at least so many bytes is chosen.
type Line struct {
	Op, Way string
	What    string              // for those who want to know
	UpTo    func(ranks int) int // bytes; nil: any number
	Fixed   bool                // it is taken wherever it can be, and no tuning changes that
}

func (l *Line) upTo(ranks int) int {
	if l.UpTo == nil {
		return Any
	}
	return l.UpTo(ranks)
}

// A Table has the ways of operations.
type Table []Line

// line returns that of a way, or nil.
func (t Table) line(op, way string) *Line {
	i := slices.IndexFunc(t, func(l Line) bool { return l.Op == op && l.Way == way })
	if i < 0 {
		return nil
	}
	return &t[i]
}

// A Way is that of buffers up to so many bytes.
type Way struct {
	Name string
	UpTo int
}

// A Choice is ways in order of length. The last one is for any.
type Choice []Way

// String is c as it is written in a tuning.
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

// A Chooser chooses by a table and a tuning, which overrules it.
type Chooser struct {
	Table
	Tuning
}

// Pick returns the way for so many ranks and bytes; none if the table does not have the operation.
func (c Chooser) Pick(op string, ranks, bytes int) string {
	tuned := c.tuned(op, ranks)
	for i := range c.Table {
		if l := &c.Table[i]; l.Op == op && (l.Fixed || tuned == nil) && bytes <= l.upTo(ranks) {
			return l.Way
		}
	}
	return tuned.Pick(bytes)
}

// Limit is how many bytes a way is for at most, Never if it is for none.
func (c Chooser) Limit(op, way string, ranks int) int {
	for _, w := range c.Choice(op, ranks) {
		if w.Name == way {
			return w.UpTo
		}
	}
	return Never
}

// Choice is what Pick picks from.
func (c Chooser) Choice(op string, ranks int) Choice {
	var ways Choice
	tuned := c.tuned(op, ranks)
	add := func(w Way) {
		if n := len(ways); w.UpTo >= 0 && (n == 0 || w.UpTo > ways[n-1].UpTo) {
			ways = append(ways, w)
		}
	}
	for i := range c.Table {
		if l := &c.Table[i]; l.Op == op && (l.Fixed || tuned == nil) {
			add(Way{l.Way, l.upTo(ranks)})
		}
	}
	for _, w := range tuned {
		add(w)
	}
	return ways
}

// Free are the ways of op that a tuning may name.
func (t Table) Free(op string) []string {
	var names []string
	for i := range t {
		if t[i].Op == op && !t[i].Fixed {
			names = append(names, t[i].Way)
		}
	}
	return names
}

// What says what a way is.
func (c Chooser) What(op, way string) string { return c.line(op, way).What }

// IsTuned reports whether a tuning has a say.
func (c Chooser) IsTuned(op string, ranks int) bool { return c.tuned(op, ranks) != nil }

// tuned is what the tuning has for the table's ways of op.
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

package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Exhaustive chooses one order after the other, until there have been all in which at most so many choices are not the
// usual one (delay-bounded scheduling: Emmi, Qadeer and Rakamaric, POPL 2011). Usually the thread that runs goes on, or
// the next one if it cannot or has looked in vain, stores wait for as long as any thread has something else to do, and
// a pick is 0.
type Exhaustive struct {
	bound  int
	path   []choice // of the run under way, or the one before
	at     int
	spent  int
	replay bool
	order  []int // room
}

// A choice is one of n.
type choice struct {
	n, chosen int
	spent     int // on those before it
}

// NewExhaustive is the first of the orders with at most bound unusual choices.
func NewExhaustive(bound int) *Exhaustive { return &Exhaustive{bound: bound} }

// More goes on to the next order, if there is one.
func (e *Exhaustive) More() bool {
	e.at, e.spent = 0, 0
	for n := len(e.path); n > 0 && !e.replay; n = len(e.path) {
		last := &e.path[n-1]
		if last.chosen+1 < last.n && last.spent < e.bound {
			last.chosen++
			return true
		}
		e.path = e.path[:n-1]
	}
	return false
}

func (e *Exhaustive) take(n int) int {
	if e.at == len(e.path) {
		e.path = append(e.path, choice{n: n, spent: e.spent})
	}
	c := &e.path[e.at]
	e.at++
	if c.chosen > 0 {
		e.spent++
	}
	return min(c.chosen, n-1)
}

// Next implements [Chooser].
func (e *Exhaustive) Next(ready []Actor, current int) int {
	e.order = preferred(e.order[:0], ready, current)
	return e.order[e.take(len(e.order))]
}

// preferred are the indexes of those who may well go on, the usual one first. Who has looked in vain goes on if nobody
// else can, or unusually if it was running.
func preferred(order []int, ready []Actor, current int) []int {
	busy := func(i int) bool { return !ready[i].Idle && !ready[i].Buffer }
	last := max(current, 0)
	for k := range ready { // beginning with current
		if i := (k + last) % len(ready); busy(i) {
			order = append(order, i)
		}
	}
	for i, a := range ready {
		if a.Buffer {
			order = append(order, i)
		}
	}
	switch {
	case len(order) == 0: // all have looked in vain: in turn
		return append(order, (last+1)%len(ready))
	case current >= 0 && ready[current].Idle:
		return append(order, current)
	}
	return order
}

// Idle implements [Chooser].
func (*Exhaustive) Idle(Actor) {}

// Pick implements [Chooser].
func (e *Exhaustive) Pick(n int) int { return e.take(n) }

// String is the order, for [ParseChoices].
func (e *Exhaustive) String() string {
	var b strings.Builder
	for i, c := range e.path {
		if c.chosen > 0 {
			fmt.Fprintf(&b, ",%d:%d", i, c.chosen)
		}
	}
	return "0:0" + b.String()
}

// ParseChoices is that order, and no other.
func ParseChoices(s string) (*Exhaustive, error) {
	e := &Exhaustive{replay: true}
	for part := range strings.SplitSeq(s, ",") {
		where, which, _ := strings.Cut(part, ":")
		i, err := strconv.Atoi(where)
		if err != nil {
			return nil, err
		}
		k, err := strconv.Atoi(which)
		if err != nil {
			return nil, err
		}
		for len(e.path) <= i {
			e.path = append(e.path, choice{})
		}
		e.path[i].chosen = k
	}
	return e, nil
}

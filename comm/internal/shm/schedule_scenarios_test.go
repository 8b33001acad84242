//go:build schedule && linux

package shm

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/choice"
)

var scenarios = []scenario{
	{"calls", 4, func(w *world) { w.calls() }},
	{"naps", 1, func(w *world) { w.naps() }},
	{"deaths", 2, func(w *world) { w.calls().dies() }},
	{"failures", 2, func(w *world) { w.calls().givesUp() }},
	{"buffers", 1, func(w *world) { w.buffers() }},
	{"buffers given up", 1, func(w *world) { w.buffers().givesUp() }},
	{"streams", 2, func(w *world) { w.streams() }},
	{"streams that end", 1, func(w *world) { w.streams()[w.rng.IntN(2)].DiesAt = 1 + w.rng.IntN(1<<(3+w.rng.IntN(8))) }},
}

// A called collective: number op of operations, on blocks of size bytes.
type called struct {
	op, size, root int
	red            string
	inHeap         []bool // whether a rank's buffers are
}

// A program is what ranks call.
type program struct {
	w     *world
	calls []called
	loser int // the rank that gives up, or dies; -1: none
	until int // before which call it gives up
}

// calls lets ranks call what the run's number says.
func (w *world) calls() *program {
	n := 2 + w.rng.IntN(3)*w.rng.IntN(2)
	p := &program{w: w, loser: -1, until: -1}
	direct := w.chance(2)
	var kinds []int // few, so that ranks get far ahead with some
	for range 1 + w.rng.IntN(3) {
		if op := w.rng.IntN(len(operations)); !direct || operations[op].name != "one after the other" {
			kinds = append(kinds, op)
		} else {
			kinds = append(kinds, 0)
		}
	}
	oneRoot := w.chance(2)
	for range 1 + w.rng.IntN(1<<w.rng.IntN(5)) {
		c := called{op: kinds[w.rng.IntN(len(kinds))], red: []string{"sum", "compose", "fold"}[w.rng.IntN(3)]}
		if !oneRoot {
			c.root = w.rng.IntN(n)
		}
		if c.size = w.rng.IntN(64); w.chance(2) {
			c.size = w.rng.IntN(1 << (4 + w.rng.IntN(7)))
		}
		for range n {
			c.inHeap = append(c.inHeap, direct && !w.chance(4))
		}
		p.calls = append(p.calls, c)
	}
	w.ranks(n, p.part)
	if direct {
		w.share()
	}
	if w.chance(2) {
		all := choice.Choice{{Name: "shared", UpTo: choice.Any}}
		for _, t := range w.teams {
			t.ways = ways{all, all}
		}
	}
	return p
}

// buffers lets ranks use each other's where they lie.
func (w *world) buffers() *program {
	p := &program{w: w, loser: -1, until: -1}
	n := 2 + w.rng.IntN(2)
	for range 1 + w.rng.IntN(2) {
		c := called{op: 1 + w.rng.IntN(8), size: leastDirect + w.rng.IntN(100), root: w.rng.IntN(n), red: "sum"}
		for range n {
			c.inHeap = append(c.inHeap, !w.chance(8))
		}
		p.calls = append(p.calls, c)
	}
	w.ranks(n, p.part)
	w.share()
	return p
}

// naps lets two ranks meet that soon go to sleep.
func (w *world) naps() {
	p := &program{w: w, loser: -1, until: -1}
	for range 1 + w.rng.IntN(3) {
		p.calls = append(p.calls, called{root: w.rng.IntN(2), red: "sum", inHeap: make([]bool, 2)})
	}
	w.ranks(2, p.part)
	for _, t := range w.teams {
		t.crowded, t.looks = true, 1
	}
}

// dies lets a rank stop for ever somewhere.
func (p *program) dies() {
	p.w.allIsWell, p.loser = false, p.w.rng.IntN(p.w.n)
	p.w.threads[p.loser].DiesAt = 1 + p.w.rng.IntN(1<<(3+p.w.rng.IntN(9)))
	p.w.m.Go("news", p.w.tell)
}

// givesUp lets a rank not take part in a call any more, or give up when it has waited for long.
func (p *program) givesUp() {
	p.w.allIsWell, p.loser = false, p.w.rng.IntN(p.w.n)
	if p.w.chance(2) {
		p.w.impatient = p.loser
		if p.w.chance(2) {
			p.w.teams[p.loser].alert = 0 // as soon as it has looked in vain
		}
	} else {
		p.until = p.w.rng.IntN(len(p.calls))
	}
	p.w.m.Go("news", p.w.tell)
}

// part is what rank t.me does.
func (p *program) part(t *Team) error {
	for i, c := range p.calls {
		if p.loser == t.me && p.until == i {
			return errGivesUp
		}
		seq, op := uint64(i+1), operations[c.op]
		p.w.begin(t, seq, Call{What: seq})
		where := ordinary
		if p.w.used[t.me] = 0; c.inHeap[t.me] {
			where = p.w.inHeap(t.me)
		}
		if err := op.run(t, where, seq, c.size, c.root, modelled(reductions[c.red])); err != nil {
			t.Abandon()
			p.check(fmt.Errorf("rank %d of %d: call %d, %s of %d bytes with root %d: %w", t.me, t.n, seq, op.name, c.size, c.root, err))
			return err
		}
	}
	return nil
}

// check fails the run if err must not be.
func (p *program) check(err error) {
	if _, isWrong := errors.AsType[*wrongResult](err); isWrong || p.loser < 0 {
		p.w.m.Fail(err)
	}
}

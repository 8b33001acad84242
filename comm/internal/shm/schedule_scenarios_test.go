//go:build schedule && linux

package shm

import (
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/choice"
)

var scenarios = []scenario{
	{"calls", 4, func(w *world) { w.calls() }},
	{"parks", 1, func(w *world) { w.parks() }},
	{"deaths", 2, func(w *world) { w.calls().dies() }},
	{"failures", 2, func(w *world) { w.calls().givesUp() }},
	{"differences", 2, func(w *world) { w.calls().differs() }},
	{"older differences", 2, func(w *world) { w.oneWay().differsElsewhere() }},
	{"panics", 1, func(w *world) { w.calls().panics() }},
	{"buffers", 1, func(w *world) { w.buffers() }},
	{"abandoned buffers", 1, func(w *world) { w.buffers().givesUp() }},
	{"streams", 2, func(w *world) { w.streams() }},
	{"streams that end", 1, func(w *world) { w.streams()[w.rng.IntN(2)].DiesAt = 1 + w.rng.IntN(1<<(3+w.rng.IntN(8))) }},
}

// A called is a call of a collective: number op of operations, on blocks of size bytes.
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

	panicAt    int    // in which call its operation panics; -1: in none
	odd, oddAt int    // the rank that makes another call, and instead of which one; -1: none
	other      called // that call
	elsewhere  bool   // instead, the rank makes one more call, in which the team has no part
}

func newProgram(w *world) *program {
	return &program{w: w, loser: -1, until: -1, panicAt: -1, odd: -1}
}

// calls lets ranks make the calls of the run's number.
func (w *world) calls() *program {
	n := 2 + w.rng.IntN(3)*w.rng.IntN(2)
	p := newProgram(w)
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
		all := choice.Ways{{Algorithm: choice.Shared, UpTo: choice.Any}}
		for _, t := range w.teams {
			t.ways.allReduce, t.ways.reduce = all, all
		}
	}
	return p
}

// oneWay lets ranks make calls that mostly go from one rank to the others, or mostly from them to it. The sender gets as far ahead as
// it may.
func (w *world) oneWay() *program {
	p := newProgram(w)
	n := 2 + w.rng.IntN(3)*w.rng.IntN(2)
	root := w.rng.IntN(n)
	ways := [][]int{{1, 3}, {2, 11}}[w.rng.IntN(2)] // broadcast and scatter, or gather and gather parts
	for range 1 + w.rng.IntN(1<<(1+w.rng.IntN(5))) {
		c := called{op: w.rng.IntN(len(operations) - 1), root: root, red: "sum", inHeap: make([]bool, n)}
		if !w.chance(32) {
			c.op = ways[w.rng.IntN(2)]
		}
		if c.size = w.rng.IntN(64); w.chance(4) { // through slots
			c.size = 300 + w.rng.IntN(300)
		}
		p.calls = append(p.calls, c)
	}
	w.ranks(n, p.part)
	return p
}

// parks lets two ranks meet that park soon.
func (w *world) parks() {
	p := newProgram(w)
	for range 1 + w.rng.IntN(3) {
		p.calls = append(p.calls, called{root: w.rng.IntN(2), red: "sum", inHeap: make([]bool, 2)})
	}
	w.ranks(2, p.part)
	for _, t := range w.teams {
		t.waiter.Oversubscribed, t.waiter.Spins = true, 1
	}
}

// dies kills a rank somewhere.
func (p *program) dies() {
	p.w.allIsWell, p.loser = false, p.w.rng.IntN(p.w.n)
	p.w.threads[p.loser].DiesAt = 1 + p.w.rng.IntN(1<<(3+p.w.rng.IntN(9)))
	p.w.m.Go("news", p.w.announce)
}

// givesUp lets a rank not take part in a call, or fail when it has waited for long.
func (p *program) givesUp() {
	p.w.allIsWell, p.loser = false, p.w.rng.IntN(p.w.n)
	if p.w.chance(2) {
		p.w.impatient = p.loser
		if p.w.chance(2) {
			p.w.teams[p.loser].waiter.Alert = 0 // as soon as it has looked in vain
		}
	} else {
		p.until = p.w.rng.IntN(len(p.calls))
	}
	p.w.m.Go("news", p.w.announce)
}

// differs lets a rank make another call than the others, or one call less.
func (p *program) differs() {
	w := p.w
	w.allIsWell, p.odd, p.oddAt = false, w.rng.IntN(w.n), w.rng.IntN(len(p.calls))
	usual := p.calls[p.oddAt]
	for p.other = usual; p.other.same(&usual); {
		switch p.other = usual; w.rng.IntN(4) {
		case 0:
			p.other.root = w.rng.IntN(w.n)
		case 1:
			p.other.op = w.rng.IntN(len(operations) - 1) // but for the last, which is several
		case 2:
			p.other.size = w.rng.IntN(1 << (4 + w.rng.IntN(7)))
		case 3:
			p.other.op = none
		}
	}
	p.mustBeNoticed()
}

// differsElsewhere lets a rank make another call than the others in which the team has no part. The calls of the team are the same.
func (p *program) differsElsewhere() {
	p.w.allIsWell, p.elsewhere, p.odd, p.oddAt = false, true, p.w.rng.IntN(p.w.n), p.w.rng.IntN(len(p.calls))
	p.mustBeNoticed()
}

// mustBeNoticed makes all ranks meet at the end.
func (p *program) mustBeNoticed() {
	p.calls = append(p.calls, called{red: "sum", inHeap: make([]bool, p.w.n)}) // a barrier
	p.w.m.Go("news", p.w.announce)
}

// none is no call at all.
const none = -1

func (c *called) same(other *called) bool {
	return c.op == other.op && c.root == other.root && c.size == other.size
}

// panics lets a rank's operation panic in a reduction.
func (p *program) panics() {
	p.w.allIsWell, p.loser, p.panicAt = false, p.w.rng.IntN(p.w.n), p.w.rng.IntN(len(p.calls))
	p.w.m.Go("news", p.w.announce)
}

// part is what rank t.me does.
func (p *program) part(t *Team) error {
	history := uint64(0)
	for i, c := range p.calls {
		if p.loser == t.me && p.until == i {
			return errGivesUp
		}
		switch {
		case p.odd != t.me || p.oddAt != i:
		case p.elsewhere:
			history++
		default:
			if c = p.other; c.op == none {
				continue
			}
		}
		call := c.words(i)
		for _, word := range []uint64{call.What, call.RootAndBefore, call.Count} {
			history = (history + word + 1) * 0x9e3779b97f4a7c15
		}
		if err := p.call(t, i, &c, call, history); err != nil {
			return err
		}
	}
	if p.odd >= 0 {
		p.w.m.Fail(fmt.Errorf("rank %d of %d has not noticed that calls differ", t.me, t.n))
	}
	return nil
}

// words are those of c, number i of the program.
func (c *called) words(i int) Call {
	return Call{What: uint64(i<<8 | c.op), RootAndBefore: uint64(c.root), Count: uint64(c.size)}
}

// call carries out c, number i of the program.
func (p *program) call(t *Team, i int, c *called, call Call, history uint64) (err error) {
	seq, op := uint64(i+1), operations[c.op]
	p.w.begin(t, seq, call, history)
	where := ordinary
	if p.w.used[t.me] = 0; c.inHeap[t.me] {
		where = p.w.inHeap(t.me)
	}
	red := reductions[c.red]
	if p.loser == t.me && p.panicAt == i {
		red = &Reduction{Elem: red.Elem, Kernel: func(_, _, _ []byte) { panic(errPanics) }}
		defer func() {
			if r := recover(); r == errPanics { //nolint:errorlint // it is this one
				t.Abandon()
				err = errPanics
			} else if r != nil {
				panic(r)
			}
		}()
	}
	values := seq
	if p.odd == t.me && i >= p.oddAt { // so that its result is wrong if it has exchanged bytes with others
		values += 1 << 20
	}
	err = op.run(t, where, values, c.size, c.root, modelled(red))
	if err != nil {
		t.Abandon()
		if m, ok := errors.AsType[*Mismatch](err); ok && p.elsewhere {
			p.checkMismatch(t.me, m)
		}
		p.check(fmt.Errorf("rank %d of %d: call %d, %s of %d bytes with root %d: %w", t.me, t.n, seq, op.name, c.size, c.root, err))
	}
	return err
}

var errPanics = errors.New("panics")

// checkMismatch fails the run if the mismatch that rank me has found is wrong.
func (p *program) checkMismatch(me int, m *Mismatch) {
	first := uint64(p.oddAt + 1)
	wrong := me != p.odd && m.Rank != p.odd || m.Agreed >= first
	for _, d := range []OpRecord{m.Mine, m.Theirs} {
		wrong = wrong || d.Seq < first && d != OpRecord{} || d.Seq > 0 && d.Call != p.calls[d.Seq-1].words(int(d.Seq-1))
	}
	if wrong {
		p.w.m.Fail(fmt.Errorf("rank %d has found %+v, and the first call in which rank %d differs has number %d", me, m, p.odd, first))
	}
}

// check fails the run if err must not be.
func (p *program) check(err error) {
	if _, isWrong := errors.AsType[*wrongResult](err); isWrong || p.loser < 0 && p.odd < 0 {
		p.w.m.Fail(err)
	}
}

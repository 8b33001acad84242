package comm

import (
	"errors"
	"slices"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// newsTimeout is how long a call that fails may take to tell the other members why.
const newsTimeout = 100 * time.Millisecond

// lastNewsTimeout is that of the last call on a group: a connection may have to be made first.
const lastNewsTimeout = time.Second

// A task is a collective whose turn has come: its plan, and the memory that it works on.
type task struct {
	plan     plan.Plan
	src, dst vector        // what is sent from and received into; one and the same for most plans
	own      vector        // what is combined with what comes, if that is not dst
	kernel   reduce.Kernel // for steps that reduce

	team  func(c *collective, t *shm.Team) error // instead of the plan, where ranks share memory
	nodes func(c *collective, n *nodes) error    // instead of the plan, where those of each node do: all stages
	end   func(c *collective)                    // makes the caller's result of what there is then; may be nil
}

// A vector is what a plan's ranges are ranges of: one buffer, or several end to end.
type vector struct {
	buf    []byte
	base   int          // the element at which buf starts
	parts  [][]byte     // instead of buf
	blocks []plan.Range // of parts
}

// at is range r of v, in elements of elem bytes. Of several buffers r is in one.
func (v *vector) at(r plan.Range, elem int) []byte {
	buf, base := v.buf, v.base
	if len(v.parts) > 0 && r.Len() > 0 {
		i, _ := slices.BinarySearchFunc(v.blocks, r.Lo, func(b plan.Range, lo int) int { return b.Hi - 1 - lo })
		buf, base = v.parts[i], v.blocks[i].Lo
	}
	if r.Len() == 0 {
		return nil
	}
	return buf[(r.Lo-base)*elem : (r.Hi-base)*elem]
}

// is says whether v and w are one and the same.
func (v *vector) is(w *vector) bool {
	if len(v.parts) > 0 || len(w.parts) > 0 {
		return unsafe.SliceData(v.parts) == unsafe.SliceData(w.parts)
	}
	return unsafe.SliceData(v.buf) == unsafe.SliceData(w.buf) && v.base == w.base
}

// emptied is memory of v's for the parts of another one.
func (v *vector) emptied() vector {
	clear(v.parts)
	return vector{parts: v.parts[:0], blocks: v.blocks[:0]}
}

// perform carries c out. An error leaves the group failed. mine says that this is the goroutine of the call.
func (c *collective) perform(mine bool) {
	returned := false
	defer func() {
		if !returned {
			c.end(recover(), mine)
		}
	}()
	g := c.g
	words := g.history.Add(c.call.Words())
	c.before = words.Before()
	err := g.lane.Begin(c.seq, c.call, c.before)
	if err == nil && callKind(c.call.Op).isForTeams() {
		err = c.attach()
	}
	if err == nil {
		c.convene(words)
	}
	g.taken = 0
	c.widen()
	for _, stage := range [...]func(*collective) task{c.begin, c.then} {
		if err != nil || stage == nil {
			break
		}
		t := stage(c)
		err = c.carryOut(&t)
	}
	c.adjourn(err)
	if err == nil {
		g.lane.End(c.seq, nil)
	} else {
		c.err = c.fail(err)
	}
	c.forget()
	returned = true
	if c.done != nil {
		close(c.done)
	}
}

// carryOut carries out t.
func (c *collective) carryOut(t *task) error {
	var err error
	switch {
	case t.team != nil:
		err = c.together(t.team(c, c.team))
	case t.nodes != nil:
		err = t.nodes(c, c.g.nodes)
	default:
		err = c.execute(t)
	}
	if err == nil && t.end != nil {
		t.end(c)
	}
	return err
}

// fail ends c, and the group, with err, and returns what the caller is told.
func (c *collective) fail(err error) error {
	g := c.g
	g.lane.End(c.seq, err)
	g.lane.Fail(g.asFailure(err))
	g.saveFlight(err)
	return g.failure(callKind(c.call.Op).String(), c.seq, c.elem, err)
}

// asFailure is what the other members are told of err.
func (g *Group) asFailure(err error) *endpoint.Failure {
	var f *endpoint.Failure
	if errors.As(err, &f) {
		return f
	}
	return &endpoint.Failure{Kind: endpoint.Aborted, Rank: g.w.rank, Text: err.Error(), Err: err}
}

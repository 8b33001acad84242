package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Data describes elements of one type in memory.
type Data struct {
	Type  reduce.Type
	Count int
	Bytes []byte
}

// A Collective is a collective call: its arguments, which have been checked, its position in its group's order, and its
// state. A Collective that has ended can be reused for another call, so that calls allocate nothing.
type Collective struct {
	g    *Group
	call call.Call
	elem int                       // the bytes of what plans count in: an element, or several that make one value
	body func(c *Collective) error // carries the call out when its turn has come

	out, in pipeline.Vector // of the caller; a call in place has only out
	reducing

	ctx      context.Context
	deadline time.Time // see Remaining
	team     *shm.Team // of the members on this machine, which have begun the call; may be nil
	seq      uint64
	before   uint32        // the hash of the group's history before the call, as it travels
	next     *Collective   // in the order of the group
	done     chan struct{} // closed when the call has ended; nil if no other goroutine can wait for it
	started  bool          // by Start: it is not used for another call
	attended atomic.Bool   // somebody has waited for it since
	err      error         // before the call begins: what is wrong with it
	panicked any           // the value of a panic in perform, in another goroutine than the call's
}

// NoGroup is the group of a rank that is no member: every call on it fails.
var NoGroup = &Group{rank: -1}

// ErrNoGroup is wrapped by the error of calls on NoGroup.
var ErrNoGroup = errors.New("the group is nil, as it is on ranks that are none of its members")

// NotStarted returns a Collective that has failed with err before it began.
func NotStarted(err error) *Collective { return &Collective{g: NoGroup, err: err} }

// Spare returns a Collective for a blocking call: the one of the last such call on g, or a new one.
func (g *Group) Spare() *Collective {
	if c := g.spare.Swap(nil); c != nil {
		return c
	}
	return new(Collective)
}

// Do carries c out. After that the group owns c, and will reuse it.
func (c *Collective) Do(ctx context.Context) error {
	err := c.Run(ctx)
	g, out, in := c.g, c.out.Emptied(), c.in.Emptied()
	*c = Collective{out: out, in: in}
	g.spare.Store(c)
	return err
}

// is makes c a call of kind on n elements of type t. All ranks of g have to agree on these.
func (c *Collective) is(g *Group, kind call.Kind, t reduce.Type, n int) {
	c.g, c.elem = g, t.Size()
	c.call = call.Call{Kind: kind, Type: uint8(t), Count: uint64(n)}
	if g == NoGroup {
		c.refuse(ErrNoGroup)
	}
}

func (c *Collective) kind() call.Kind { return c.call.Kind }

// AddOut adds b to the buffers in which c leaves its results.
func (c *Collective) AddOut(b []byte) { c.out.Bufs = append(c.out.Bufs, b) }

// AddIn adds b to the buffers that c reads.
func (c *Collective) AddIn(b []byte) { c.in.Bufs = append(c.in.Bufs, b) }

// refuse records what is wrong with the call; the first reason stays.
func (c *Collective) refuse(err error) {
	if c.err == nil {
		c.err = c.g.Refused(badArgument(c.kind(), err))
	}
}

func (c *Collective) refusef(format string, args ...any) { c.refuse(fmt.Errorf(format, args...)) }

// Refused returns err, because of which this rank does not make a call. It notifies the other ranks, which may wait in
// that call.
func (g *Group) Refused(err error) error {
	if err != nil && g.Comm != nil {
		g.Comm.Refused(err.Error())
	}
	return err
}

// forget drops the references to the caller's buffers, so that neither c nor its group keeps them alive.
func (c *Collective) forget() {
	if c.g.layout != nil {
		c.g.staged = hier.Call{}
	}
	c.body = nil
	c.out, c.in = c.out.Emptied(), c.in.Emptied()
	c.reducing = reducing{}
}

// root makes r the root of the call.
func (c *Collective) root(r int) {
	if !c.g.Has(r) {
		c.refuse(noRank(c.g, r))
	}
	c.call.Root = int32(r)
}

func noRank(g *Group, rank int) error {
	return fmt.Errorf("no rank %d in a group of %d", rank, g.Size())
}

// wantBlocks checks that whole, of n elements, holds a block of m for every rank.
func (c *Collective) wantBlocks(whole string, n int, block string, m int) {
	if size := c.g.Size(); n != size*m {
		c.refusef("len(%s) is %d: want Size × len(%s) = %d × %d", whole, n, block, size, m)
	}
}

// wantBufs checks that v has a buffer for every rank, and that this rank's is as long as block, which has n elements of
// elem bytes.
func (c *Collective) wantBufs(name string, v *pipeline.Vector, block string, n, elem int) {
	if size := c.g.Size(); len(v.Bufs) != size {
		c.refusef("len(%s) is %d: want Size = %d", name, len(v.Bufs), size)
		return
	}
	if c.err != nil {
		return
	}
	if got := len(v.Bufs[c.g.rank]) / elem; got != n {
		c.refusef("len(%s[%d]) is %d: want len(%s) = %d", name, c.g.rank, got, block, n)
	}
}

// wantValues checks that all buffers of v hold whole values of the operation. Elements have elem bytes.
func (c *Collective) wantValues(name string, v *pipeline.Vector, elem int) {
	for i, p := range v.Bufs {
		if w := c.op.Width; w > 1 && len(p)/elem%w != 0 {
			c.refusef("%v: len(%s[%d]) is %d: want a multiple of %d", c.op, name, i, len(p)/elem, w)
		}
	}
}

// wantCounts checks that counts has a number for every rank, and that they add up to n.
func (c *Collective) wantCounts(name string, counts []int, n int) {
	if size := c.g.Size(); len(counts) != size {
		c.refusef("len(%sCounts) is %d: want Size = %d", name, len(counts), size)
	}
	left := n
	for r, m := range counts {
		if m < 0 {
			c.refusef("%sCounts[%d] is %d", name, r, m)
		}
		if m > left {
			c.refusef("%sCounts add up to more than len(%s) = %d", name, name, n)
		}
		left -= m
	}
	if left != 0 {
		c.refusef("%sCounts add up to %d: want len(%s) = %d", name, n-left, name, n)
	}
}

// agreeOnLengths makes the lengths of v's blocks, in elements, what ranks agree on.
func (c *Collective) agreeOnLengths(v *pipeline.Vector, width int) {
	call.SetLengths(&c.call, len(v.Blocks), func(i int) int { return v.Blocks[i].Len() * width })
}

// lengths returns a checksum of the lengths of v's blocks.
func lengths(v *pipeline.Vector) uint32 {
	h := call.NoLengths
	for _, b := range v.Blocks {
		h = call.AddLength(h, b.Len())
	}
	return uint32(h ^ h>>32)
}

package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/hier"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// Data is elements of one type, and where they are.
type Data struct {
	Type  reduce.Type
	Count int
	Bytes []byte
}

// A Collective is a call, checked, with its place in its group's order. It is data, and a function that needs no more than that: one
// that has ended can be another call's, and leaves nothing behind for the garbage collector.
type Collective struct {
	g    *Group
	call call.Call
	elem int                       // bytes of what plans count in: an element, or several that make one value
	body func(c *Collective) error // carries the call out when its turn has come

	out, in pipeline.Vector // the caller's; out is all of one that works in place
	reducing

	ctx      context.Context
	deadline time.Time // see left
	team     *shm.Team // of the members here, which have begun it; may be nil
	seq      uint64
	before   uint32        // what travels of the group's history before it
	behind   *Collective   // the next in the order
	done     chan struct{} // closed when it has ended; nil if nobody else can wait for it
	err      error         // at first: what is wrong with the call
	panicked any           // the value of a panic in perform, in another goroutine than the call's
}

// nobody stands for a group that is nil, on which every call is wrong.
var nobody = &Group{}

// ErrNoGroup is wrapped by the error of calls on a nil group.
var ErrNoGroup = errors.New("the group is nil, as it is on ranks that are none of its members")

// NotStarted returns a Collective that has failed with err before it began.
func NotStarted(err error) *Collective { return &Collective{g: nobody, err: err} }

// Spare returns a Collective for a blocking call: the one that the last such call has left to g, or a new one.
func (g *Group) Spare() *Collective {
	if g != nil {
		if c := g.spare.Swap(nil); c != nil {
			return c
		}
	}
	return new(Collective)
}

// Do carries c out, and leaves c to the group: nobody may keep anything of it.
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
	c.call = call.Call{Op: uint8(kind), Type: uint8(t), Count: uint64(n)}
	if g == nil {
		c.g = nobody
		c.refuse(ErrNoGroup)
	}
}

// kind is which call c is.
func (c *Collective) kind() call.Kind { return call.Kind(c.call.Op) }

// Group is c's group.
func (c *Collective) Group() *Group { return c.g }

// AddOut adds b to the buffers that c leaves its results in.
func (c *Collective) AddOut(b []byte) { c.out.Bufs = append(c.out.Bufs, b) }

// AddIn adds b to the buffers that c reads.
func (c *Collective) AddIn(b []byte) { c.in.Bufs = append(c.in.Bufs, b) }

// refuse records what is wrong with the call; the first reason stays.
func (c *Collective) refuse(err error) {
	if c.err == nil {
		c.err = c.g.Refused(badArgument(c.kind(), err))
	}
}

// refusef is refuse of what format says.
func (c *Collective) refusef(format string, args ...any) { c.refuse(fmt.Errorf(format, args...)) }

// Refused returns err, because of which this rank does not make a call. It tells the other ranks, who may make the call and wait in it.
func (g *Group) Refused(err error) error {
	if err != nil && g.Lane != nil {
		g.Lane.Refused(err.Error())
	}
	return err
}

// left returns how long this rank may still wait. The group's timeout runs from the first call of left.
func (c *Collective) left() time.Duration {
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.g.Timeout)
	}
	return max(time.Until(c.deadline), time.Nanosecond)
}

// forget lets go of the caller's buffers, which neither a collective that is kept nor its group keeps.
func (c *Collective) forget() {
	if c.g.layout != nil {
		c.g.staged = hier.Call{}
	}
	c.body = nil
	c.out, c.in = c.out.Emptied(), c.in.Emptied()
	c.reducing = reducing{}
}

package comm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/comm/internal/shm"
)

// A collective is a call, checked, with its place in its group's order. It is data, and functions that need no more than
// that: one that has ended can be another call's, and leaves nothing behind for the garbage collector.
type collective struct {
	work  Work
	g     *Group
	call  endpoint.Call
	elem  int                      // bytes of what the plan counts in: an element, or several that make one value
	begin func(c *collective) task // called when its turn has come
	then  func(c *collective) task // called when that task is done, if there is another

	out, in vector // the caller's; out is all of one that works in place
	reducing

	ctx      context.Context
	deadline time.Time // see left
	team     *shm.Team // of the members here, which have begun it; may be nil
	seq      uint64
	before   uint32        // what travels of the group's history before it
	behind   *collective   // the next in the order
	done     chan struct{} // closed when it has ended; nil if nobody else can wait for it
	err      error         // at first: what is wrong with the call
	panicked any           // the value of a panic in perform, in another goroutine than the call's
}

// nobody stands for a group that is nil, on which every call is wrong.
var nobody = &Group{codec: defaultCodec}

// errNoGroup is what is wrong then.
func errNoGroup() error {
	const text = "the group is nil, as it is on ranks that are none of its members"
	if unknown := unknownDimension(); unknown != "" {
		return fmt.Errorf("%s, and where Mesh.Group finds no such dimension: %s", text, unknown)
	}
	return errors.New(text)
}

// someGroup checks that there is a group for a call of op.
func someGroup(op string, g *Group) error {
	if g == nil {
		return &ArgumentError{Op: op, Err: errNoGroup()}
	}
	return nil
}

// spare is a collective for a call that is over when it returns: the one that such a call has left to g, if there is one.
func (g *Group) spare() *collective {
	if g != nil {
		if c := g.left.Swap(nil); c != nil {
			return c
		}
	}
	return new(collective)
}

// do is run of a collective of which nobody keeps anything, so that it can be left to the group.
func (c *collective) do(ctx context.Context) error {
	err := c.run(ctx)
	g, out, in := c.g, c.out.emptied(), c.in.emptied()
	*c = collective{out: out, in: in}
	g.left.Store(c)
	return err
}

// is makes c a call of kind on n elements of type t, which is what all ranks of g agree on.
func (c *collective) is(g *Group, kind callKind, t reduce.Type, n int) {
	c.g, c.elem = g, t.Size()
	c.call = endpoint.Call{Op: uint8(kind), Type: uint8(t), Count: uint64(n)}
	if g == nil {
		c.g = nobody
		c.refuse(errNoGroup())
	}
}

// refuse records what is wrong with the call; the first reason stays.
func (c *collective) refuse(err error) {
	if c.err == nil {
		c.err = c.g.refused(&ArgumentError{Op: callKind(c.call.Op).String(), Err: err})
	}
}

// refusef is refuse of what format says.
func (c *collective) refusef(format string, args ...any) { c.refuse(fmt.Errorf(format, args...)) }

// refused is err, with which this rank does not make a call that the others may make and wait in: they get to know.
func (g *Group) refused(err error) error {
	if err != nil && g.lane != nil {
		g.lane.Refused(err.Error())
	}
	return err
}

// left is how long this rank may wait on: the group's timeout, from when it first looks.
func (c *collective) left() time.Duration {
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.g.timeout)
	}
	return max(time.Until(c.deadline), time.Nanosecond)
}

// forget lets go of the caller's buffers, which a Work that is kept does not keep.
func (c *collective) forget() {
	c.begin, c.then = nil, nil
	c.out, c.in = c.out.emptied(), c.in.emptied()
	c.reducing = reducing{}
}

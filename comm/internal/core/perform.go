package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

const (
	// NotifyTimeout is how long a call that fails may wait until the other members know why.
	NotifyTimeout = 100 * time.Millisecond
	// CloseNotifyTimeout is the same for Close. It is longer, because no other call follows.
	CloseNotifyTimeout = time.Second
)

// begin records that c begins. It fails if the group has, or if another member is known to have made other calls.
func (c *Collective) begin() error { return c.g.Comm.Begin(c.seq, c.call.Call(), c.begun.Before()) }

// perform carries c out. An error leaves the group failed. mine says that this is the goroutine of the call.
func (c *Collective) perform(mine bool) {
	var (
		g        = c.g
		b        Backend
		err      error
		returned bool
	)
	if mine {
		defer g.bind()()
	}
	defer func() {
		if !returned {
			c.endBroken(b, recover(), mine)
		}
	}()
	if c.begun = g.history.Add(c.call); g.unattached || !g.Comm.Usable() {
		err = c.attach()
	}
	if err == nil {
		g.scratch.Reset()
		b = g.backend(c)
		err = b.Run(c)
	}
	if err != nil {
		c.err = c.fail(b, err)
	}
	c.forget()
	returned = true
	if c.done != nil {
		close(c.done)
	}
}

// fail ends c, and the group, with err, and returns the error of the call.
func (c *Collective) fail(b Backend, err error) error {
	g := c.g
	if b != nil {
		b.Abandon()
	}
	err = g.teamFailure(err)
	g.Comm.End(c.seq, err)
	g.Comm.Fail(err)
	g.OnFailure(err)
	return c.failed(err)
}

func (c *Collective) failed(err error) error {
	return &Error{Group: c.g, Op: c.kind().String(), Seq: c.seq, Elem: c.elem, Err: err}
}

// Context is that of a blocking call, with which its waits that last poll.
func (c *Collective) Context() context.Context {
	switch {
	case c.g.World.Poll == nil || c.served:
		return c.ctx
	case c.polledOf != c.seq:
		c.polled, c.polledOf = endpoint.WithPoll(c.ctx, c.g.World.Poll), c.seq
	}
	return c.polled
}

// Fail implements pipeline.Caller. fail ends c.
func (c *Collective) Fail(err error) { c.g.Comm.Fail(c.g.teamFailure(err)) }

// Remaining returns how long this rank may still wait. The group's timeout begins with the first call of Remaining.
func (c *Collective) Remaining() time.Duration {
	if c.deadlineOf != c.seq {
		c.deadline, c.deadlineOf = time.Now().Add(c.g.Timeout), c.seq
	}
	return max(time.Until(c.deadline), time.Nanosecond)
}

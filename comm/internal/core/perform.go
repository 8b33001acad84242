package core

import (
	"context"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
)

const (
	// NotifyTimeout is how long a call that fails may wait until the other members know why.
	NotifyTimeout = 100 * time.Millisecond
	// CloseNotifyTimeout is the same for Close. It is longer, because it may have to connect first, and no other call follows.
	CloseNotifyTimeout = time.Second
)

// perform carries c out. An error leaves the group failed. mine says that this is the goroutine of the call.
func (c *Collective) perform(mine bool) {
	returned := false
	defer func() {
		if !returned {
			c.endBroken(recover(), mine)
		}
	}()
	g := c.g
	words := g.history.Add(c.call.Words())
	c.before = words.Before()
	err := g.Comm.Begin(c.seq, c.call, c.before)
	if err == nil && c.kind().UsesMemory() {
		err = c.attach()
	}
	if err == nil {
		c.beginInMemory(words)
	}
	g.taken = 0
	c.widen()
	if err == nil {
		err = c.body(c)
	}
	c.endInMemory(err)
	if err == nil {
		g.Comm.End(c.seq, nil)
	} else {
		c.err = c.fail(err)
	}
	c.forget()
	returned = true
	if c.done != nil {
		close(c.done)
	}
}

// fail ends c, and the group, with err, and returns the error of the call.
func (c *Collective) fail(err error) error {
	g := c.g
	g.Comm.End(c.seq, err)
	g.Comm.Fail(err)
	g.noteFailure(err)
	return c.failed(err)
}

// failed returns err as the error of c.
func (c *Collective) failed(err error) error {
	return &Error{Group: c.g, Op: c.kind().String(), Seq: c.seq, Elem: c.elem, Err: err}
}

// exchange carries out t, a stage of c by messages.
func (c *Collective) exchange(t *pipeline.Task) error {
	if c.kind() == call.KindMonitoredBarrier {
		defer c.monitor()()
	}
	return c.g.Pipeline.Run(pipeline.Call{Seq: c.seq, Call: c.call, Elem: c.elem, Caller: (*stages)(c)}, t)
}

// stages is the view of a collective that packages hier and pipeline have.
type stages Collective

func (s *stages) Context() context.Context { return s.ctx }

func (s *stages) Remaining() time.Duration { return (*Collective)(s).remaining() }

func (s *stages) Memory(n int) []byte { return s.g.memory(n) }

func (s *stages) InMemory(err error) error { return (*Collective)(s).inMemory(err) }

func (s *stages) Exchange(t pipeline.Task) error { return (*Collective)(s).exchange(&t) }

var alreadyDone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

package endpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/wire"
)

// A Communicator is the traffic of one group: its own space of tags and sequence numbers, and its own failure.
type Communicator communicator

type communicator struct {
	ep      *state
	id      uint64
	members []int // world ranks

	// Guarded by the mutex.
	queues     matching.Queues[*operation]
	ops        []*operation             // every operation that has not ended, in no order
	leftAt     map[int]call.Fingerprint // the last collective of members that have closed it, if this rank has not come so far
	askers     map[int]uint64           // members that have asked while this rank waits, and of which collective
	monitor    *monitor                 // of this rank
	monitored  uint64                   // the collective that another member monitors
	err        *diagnosis.Failure
	backends   []Backend // beside the endpoint
	failed     time.Time // since when err
	closed     bool
	abandoned  []string                   // the operations that Abandoned returns
	doc        []byte                     // err, as it is sent
	notified   map[int]chan struct{}      // who has been sent err; closed when that has been written
	unreached  []int                      // members to connect to, to notify them
	reaching   []int                      // those to which this rank connects now
	allReached chan struct{}              // closed when there are no more of these; nil: there are none
	closedBy   map[int]*diagnosis.Failure // members that have closed the communicator

	collectives, transfers flight.Recorder
	observed               observation // see progress
	refused                string      // why this rank did not make its last call that was wrong in itself, at refusedAt
	refusedAt              time.Time

	unusable atomic.Bool // failed or closed
	ctx      context.Context
	cancel   context.CancelFunc // of ctx
}

// Context ends when the communicator fails, or is closed.
func (c *Communicator) Context() context.Context { return c.ctx }

// Open returns the communicator of the group id, whose members are world ranks and include this one.
func (e *Endpoint) Open(id uint64, members []int) (*Communicator, error) {
	in := e.lock()
	defer in.unlock()
	if e.closed {
		return nil, ErrClosed
	}
	if e.comms[id] != nil {
		return nil, fmt.Errorf("group %#x is open already", id)
	}
	c := &communicator{ep: in, id: id, members: slices.Clone(members), notified: map[int]chan struct{}{}}
	c.ctx, c.cancel = context.WithCancel(e.ctx)
	e.comms[id] = c
	for _, m := range e.early[id] {
		switch m.Kind {
		case wire.Leave:
			e.peers[m.Source].earlyLeaves--
			c.leave(m.Source, m.Fingerprint)
			m.Free()
		case wire.Abort:
			e.peers[m.Source].earlyFailures--
			c.fail(diagnosis.DecodeFailure(m.Payload, m.Source, len(e.peers)), m.Source)
		default:
			c.queues.Keep(m)
		}
	}
	delete(e.early, id)
	if e.revoked != nil {
		c.stop(e.revoked)
	}
	for _, r := range members {
		if p := e.peers[r]; p.state == stateGone && !p.saidGoodbye && c.closedBy[r] == nil {
			c.fail(p.failure, r) // all members know, or will when they open it
		}
	}
	return (*Communicator)(c), nil
}

// Go runs f on a goroutine that the endpoint's Close waits for. Once that has begun, f runs before Go returns.
func (c *Communicator) Go(f func()) {
	in := c.lock()
	e := in.ep
	if e.closed {
		in.unlock()
		f()
		return
	}
	e.wg.Go(f)
	in.unlock()
}

// A Backend carries out collectives beside messages. Its methods are called with the mutex held: they take no other lock,
// and wait for nothing.
type Backend interface {
	// Interrupt ends what collectives wait for, because the communicator has failed.
	Interrupt()
	// Moves returns a number that changes while a long collective goes on.
	Moves() uint64
}

// Attach says that b carries out collectives of c.
func (c *Communicator) Attach(b Backend) {
	in := c.lock()
	defer in.unlock()
	if c.backends = append(c.backends, b); c.err != nil && !c.closed {
		b.Interrupt()
	}
}

// moves returns a number that changes when a collective begins, moves bytes, or ends.
func (c *communicator) moves() uint64 {
	n := c.collectives.Moves()
	for _, b := range c.backends {
		n += b.Moves()
	}
	return n
}

// Refused says that this rank does not make a call because of what text says, for those who wait for it.
func (c *Communicator) Refused(text string) {
	in := c.lock()
	defer in.unlock()
	c.refused, c.refusedAt = strings.ToValidUTF8(text[:min(len(text), diagnosis.MaxText/2)], ""), time.Now()
}

// Err is the communicator's failure, or ErrClosed, or nil.
func (c *Communicator) Err() error {
	in := c.lock()
	defer in.unlock()
	return in.usable()
}

func (c *communicator) usable() error {
	switch {
	case c.closed:
		return ErrClosed
	case c.err != nil:
		return c.err
	}
	return nil
}

// Usable reports whether the communicator has neither failed nor been closed.
func (c *Communicator) Usable() bool { return !c.unusable.Load() }

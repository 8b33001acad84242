package endpoint

import (
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
	"github.com/gorun/gorun/comm/internal/matching"
)

// Begin says that this rank starts collective seq, before which the group's history is before; End follows. A member that has called
// something else by then fails the communicator.
func (c *Communicator) Begin(seq uint64, what call.Call, before uint32) error {
	in := c.lock()
	defer in.unlock()
	if err := in.usable(); err != nil {
		return err
	}
	c.collectives.Begin(call.Fingerprint{Seq: seq, Call: what, Before: before})
	return in.compareAll()
}

// End says that collective seq has ended.
func (c *Communicator) End(seq uint64, err error) {
	in := c.lock()
	defer in.unlock()
	c.collectives.End(seq, err)
}

// Collectives is where to note those that this rank carries out without the endpoint.
func (c *Communicator) Collectives() *flight.Recorder { return &c.collectives }

// Moved counts bytes for collective seq that have been moved by other means.
func (c *Communicator) Moved(seq, sent, received uint64) {
	in := c.lock()
	defer in.unlock()
	c.collectives.Moved(seq, sent, received)
}

// record notes that op has ended, and counts its bytes for the collective that it is a step of or for itself.
func (c *communicator) record(op *operation) {
	sent, received := uint64(0), uint64(op.n)
	if op.send {
		sent, received = uint64(len(op.buf)), 0
	}
	switch {
	case op.err != nil || op.probe:
	case op.seq > 0:
		c.collectives.Moved(op.seq, sent, received)
	default:
		c.transfers.Moved(op.number, sent, received)
	}
	c.transfers.End(op.number, op.err)
}

// A Flight is what a communicator remembers.
type Flight struct {
	Collectives []flight.Record  // oldest first
	Transfers   []flight.Record  // sends, receives and probes
	Waits       []diagnosis.Wait // of this rank for others, if they have lasted long enough to ask why
	Err         error            // why the communicator has failed
}

// Flight is what the communicator remembers now.
func (c *Communicator) Flight() Flight {
	in := c.lock()
	defer in.unlock()
	f := Flight{Collectives: c.collectives.All(), Transfers: c.transfers.All(), Err: in.usable()}
	for _, s := range c.ep.stalls {
		if s.op.comm == in {
			f.Waits = append(f.Waits, s.op.awaits().Wait)
		}
	}
	return f
}

// compare fails the communicator if source, which has begun f, has made other calls than this rank. It cannot tell if
// this rank does not remember that call, or has not come to it.
func (c *communicator) compare(source int, f call.Fingerprint) error {
	mine, ok := c.collectives.Recall(f.Seq)
	if !ok {
		return nil
	}
	if mine != f {
		f := c.mismatch(source, f)
		c.fail(f, -1)
		return f
	}
	c.ep.peers[source].agreed = agreed{c, f.Seq}
	return nil
}

// agreed says up to which collective of a communicator a peer is known to have made this rank's calls. The communicator is the one in which
// that was last found out.
type agreed struct {
	comm *communicator
	seq  uint64
}

// mismatch is the failure of a communicator in which source has called theirs while this rank called something else, then or before.
func (c *communicator) mismatch(source int, theirs call.Fingerprint) *diagnosis.Failure {
	mine, ok := c.collectives.Recall(theirs.Seq)
	if !ok {
		mine = c.collectives.Last()
	}
	f := &diagnosis.Failure{
		Kind: diagnosis.Mismatched, Rank: source, Text: "called something else",
		Earlier: mine.Seq == theirs.Seq && mine.Before != theirs.Before,
		Calls:   []diagnosis.RankCall{{Rank: c.ep.rank, Seq: mine.Seq, Call: mine.Call}, {Rank: source, Seq: theirs.Seq, Call: theirs.Call}},
	}
	if p := c.ep.peers[source]; p.agreed.comm == c {
		f.Agreed = p.agreed.seq
	}
	return f
}

// compareAll fails the communicator if a message has come from a member that has called something else, or that was sent in a collective in
// which this rank has not awaited it.
func (c *communicator) compareAll() error {
	last := c.collectives.Last().Seq
	err := c.queues.EachOfCollectives(last, func(m *matching.Message) error {
		if err := c.compare(m.Source, m.Fingerprint); err != nil {
			return err
		}
		if m.Seq < last || !c.collectives.IsUnderWay() {
			return c.unwanted(m)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for source, f := range c.leftAt {
		if err := c.compare(source, f); err != nil {
			return err
		}
	}
	return nil
}

// takeInTime is how long CompareAll takes in what one member sends without end.
const takeInTime = 10 * time.Millisecond

// CompareAll takes in what has come from other members, and fails the communicator if that tells of other calls than this rank has made.
func (c *Communicator) CompareAll() {
	in := c.lock()
	defer in.unlock()
	if in.usable() != nil {
		return
	}
	for _, r := range c.members {
		for begun := time.Now(); time.Since(begun) < takeInTime; {
			if p := in.ep.peers[r]; p.link.Stream == nil || !in.ep.pull(p) {
				break
			}
		}
	}
	if in.usable() == nil {
		_ = in.compareAll() // the communicator has failed with it
	}
}

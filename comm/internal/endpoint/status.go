package endpoint

import (
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/flight"
)

// Moves is a number that changes when an operation of this rank, on any communicator, begins, moves bytes, or ends.
func (e *Endpoint) Moves() uint64 {
	in := e.lock()
	defer in.unlock()
	sum := uint64(len(e.comms)) + e.moved
	for _, c := range e.comms {
		sum += c.moves() + c.transfers.Moves()
	}
	return sum
}

// Status is what this rank says of itself to one that wants to know why it does not go on. isBusy says that it is in an operation, and
// isStalled that it has waited in it for others for a second or more. The report is as to a rank that waits for it in c.
func (c *Communicator) Status() (report *diagnosis.WaitReport, isBusy, isStalled bool) {
	in := c.lock()
	defer in.unlock()
	e := in.ep
	isStalled = len(e.stalls) > 0
	isBusy = isStalled || e.parked > 0
	for _, other := range e.comms {
		isBusy = isBusy || slices.ContainsFunc(other.collectives.All(), func(r flight.Record) bool { return r.IsUnderWay() })
	}
	return e.report(in, 0), isBusy, isStalled
}

// Recent is how many of the last collectives of c are remembered, how many bytes this rank has moved in them, and how long ago the first
// of them began.
func (c *Communicator) Recent() (calls int, sent, received uint64, over time.Duration) {
	in := c.lock()
	defer in.unlock()
	return c.collectives.Recent()
}

// Pace is how long this rank takes from one collective of c to the next: the median of the last ones, how many these are, and how many
// collectives there have been.
func (c *Communicator) Pace() (median time.Duration, samples int, calls uint64) {
	in := c.lock()
	defer in.unlock()
	median, samples = c.collectives.Pace()
	return median, samples, c.collectives.Last().Seq
}

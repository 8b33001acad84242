package endpoint

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/progress"
	"github.com/gorun/gorun/comm/internal/wire"
)

type peerState int

const (
	stateIdle peerState = iota // no stream; perhaps one is on its way
	stateUp                    // conn or stream is the stream
	stateGone                  // failure says why; final
)

// A peer is what this rank knows of another. Guarded by the endpoint's mutex, except where said.
type peer struct {
	ep        *Endpoint
	rank      int
	state     peerState
	wanted    bool            // some operation needs a stream
	dialing   bool            // Endpoint.dial is running
	admitted  bool            // the peer's own dial has been let in and will be handed over
	left      bool            // the peer has said goodbye
	dismissed bool            // this rank has said goodbye to it
	fate      Fate            // once its stream has ended without
	cause     diagnosis.Cause // that the peer has told of

	conn    net.Conn           // while up, if it blocks
	link    *progress.Conn     // the stream while up, else
	failure *diagnosis.Failure // once gone
	suspect string             // what its stream has last been suspected of, by who waited for it
	settled chan struct{}      // closed when up or gone
	gone    chan struct{}      // closed when gone

	in     inbox
	out    wire.Outbox[*Op]
	broken bool // a write has failed, because of fault; the reader will find out more
	fault  error
	row    int           // short messages since this rank has last waited
	since  uint64        // which wait that was
	wake   chan struct{} // tells the writer of a net.Conn of work

	agreed                     agreed
	sent                       wire.SendCredit
	received                   wire.ReceiveCredit
	earlyLeaves, earlyFailures int            // of groups that this rank has not opened
	inbound                    map[uint64]*Op // receives whose data frame will come, by the sender's id
}

func (e *Endpoint) newPeer(rank int) *peer {
	return &peer{
		ep: e, rank: rank, link: e.engine.Conn(rank), inbound: map[uint64]*Op{}, wake: make(chan struct{}, 1),
		settled: make(chan struct{}), gone: make(chan struct{}),
	}
}

func (p *peer) isSettled() bool {
	select {
	case <-p.settled:
		return true
	default:
		return false
	}
}

func (p *peer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// describe puts the error of a broken stream into words. They do not say that the peer has died, which no stream can know.
func describe(err error) string {
	const lost = "the connection to it was lost"
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return lost + " (closed without goodbye)"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return lost + " (reset)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens at its address: it left, or died"
	case errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return lost + " (its machine did not answer for half a minute)"
	}
	return err.Error()
}

// A protocolError says that a peer has sent what no rank sends.
type protocolError struct{ error }

func (e protocolError) Error() string { return "broke the protocol: " + e.error.Error() }

func (e protocolError) Unwrap() error { return e.error }

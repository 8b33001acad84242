package endpoint

import (
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
)

// A stream between two processes that outlive a round serves the next round, too. After Revoke, each end says that its round is over, and
// sends nothing more. An end that gives up a long message does not say it; its stream stays until Close. Once both have said it, and all has been written, the stream is empty in both directions, and its other end lives. So no
// message of one round can be taken for one of another, and no stream is used again that has become useless. TakeStreams takes such streams
// out. Their ends use them again only if both say in the next round that they have taken them out (package bootstrap).

// A roundEnd records which RoundEnd frames a rank and its peer have sent.
type roundEnd struct {
	sent     bool // the frame is queued, or written
	received bool // the peer's has come
}

// sendRoundEnd tells p, if it is connected, that this rank's round is over. Nothing is sent to p after that. The mutex is held.
func (e *Endpoint) sendRoundEnd(p *peer) {
	if p.state != stateUp || p.outputClosed {
		return
	}
	e.enqueue(p, frame{Header: wire.Header{Kind: wire.RoundEnd}})
	p.outputClosed, p.roundEnd.sent = true, true
}

// mostRest is how many bytes of a message may follow after the end of a round, so that its stream can be used again.
const mostRest = wire.LongestChunk

// abandonWrites drops what is to be written to ranks that are owed more than mostRest bytes. Nothing more is sent to them, not even that the round is over.
// To copy a long message, and to write it to the end, would take longer than to connect again. Their streams stay until Close: a rank that does
// not know yet that the round is over would take the end of its stream for the death of this rank. Sends of communicators that have been closed
// end with failure. The mutex is held.
func (e *Endpoint) abandonWrites(failure *diagnosis.Failure) {
	for _, p := range e.peers {
		if p.state != stateUp || p.out.Rest() <= mostRest {
			continue
		}
		p.outputClosed = true
		for _, f := range p.out.Drop() {
			f.CloseSent()
			if f.Op != nil && f.Op.comm.closed { // stop ends those of the others
				f.Op.comm.endTaken(f.Op, failure)
			}
		}
	}
}

// TakeStreams takes out the streams, by rank, that may be used in the next round, after Revoke. The caller owns them. It is nil for all other
// ranks, whose streams Close ends.
func (e *Endpoint) TakeStreams() []transport.Stream {
	e.mu.Lock()
	defer e.mu.Unlock()
	streams := make([]transport.Stream, len(e.peers))
	for r, p := range e.peers {
		if p.state != stateUp || p.link.Stream == nil || !p.roundEnd.sent {
			continue
		}
		e.push(p)
		for began := time.Now(); !p.roundEnd.received && e.pull(p) && time.Since(began) < takeInTime; { // what has come by now
		}
		if p.roundEnd.received && p.out.Len() == 0 && p.fault == nil && !p.link.Ended {
			streams[r] = e.engine.Release(p.link)
			e.drop(p, &diagnosis.Failure{Kind: diagnosis.Closed, Rank: e.rank, Text: ErrClosed.Error(), Err: ErrClosed})
		}
	}
	return streams
}

// use makes streams of the round before the streams to ranks of this one. The mutex is held.
func (e *Endpoint) use(streams []transport.Stream) {
	for r, s := range streams {
		if s == nil {
			continue
		}
		if !e.engine.Start() {
			_ = s.Close()
			continue
		}
		e.engine.Add(r, s, e.peers[r])
		e.established(e.peers[r])
	}
}

package endpoint

import (
	"time"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
)

// noteCause notes that an operation of this rank has failed because of f, and tells the others. What fails soon after is taken for a
// consequence, and not told. The mutex is held.
func (e *Endpoint) noteCause(f *diagnosis.Failure) {
	now := time.Now()
	if f.Rank == e.rank || f.Rank == AnySource || e.closed || e.cause.IsRecent(now) {
		return
	}
	e.cause, e.causeSent = diagnosis.Cause{Failure: f, At: now}, nil
	for _, p := range e.peers {
		if p.state == stateUp {
			e.tellCause(p)
		}
	}
}

// tellCause tells p why an operation of this rank has failed lately, if one has. The mutex is held.
func (e *Endpoint) tellCause(p *peer) {
	if e.cause.IsRecent(time.Now()) {
		e.causeSent = append(e.causeSent, e.sendFailure(p, wire.Cause, 0, e.cause.Failure))
	}
}

// receiveCause takes in why an operation of p's has failed. The mutex is held.
func (e *Endpoint) receiveCause(p *peer, f *diagnosis.Failure) {
	if f.Rank != p.rank {
		p.cause = diagnosis.Cause{Failure: f, At: time.Now()}
	}
}

// rootCause is the failure at the root of f, which says that p is gone.
func (p *peer) rootCause(f *diagnosis.Failure) *diagnosis.Failure {
	return p.cause.RootOf(f, time.Now())
}

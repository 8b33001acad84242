package endpoint

import "time"

// A rank whose operation fails because of another rank mostly ends, and then those that wait for it on other groups find that it
// has died. So it tells every rank that it is connected to, whatever their groups, why its operation has failed. If it is gone soon
// after, that is the root cause of what fails there.

// causeTime is how long after a failure of an operation of a rank the end of that rank counts as its consequence.
const causeTime = 10 * time.Second

// A cause is why an operation of a rank has failed, through no fault of its own. The zero value is none.
type cause struct {
	failure *Failure
	at      time.Time       // by this rank's clock
	told    []chan struct{} // of this rank's own cause: each is closed when a peer has been told of it, or never will be
}

// isRecent reports whether there is a cause, of which what happens now may be a consequence.
func (c *cause) isRecent() bool { return c.failure != nil && time.Since(c.at) < causeTime }

// noteCause notes that an operation of this rank has failed because of f, and tells the others. What fails within causeTime of it
// is taken for a consequence, and not told. The mutex is held.
func (e *Endpoint) noteCause(f *Failure) {
	if f.Rank == e.rank || f.Rank == AnySource || e.closed || e.cause.isRecent() {
		return
	}
	e.cause = cause{failure: f, at: time.Now()}
	for _, p := range e.peers {
		if p.state == stateUp {
			e.tellCause(p)
		}
	}
}

// tellCause tells p why an operation of this rank has failed lately, if one has. The mutex is held.
func (e *Endpoint) tellCause(p *peer) {
	if !e.cause.isRecent() {
		return
	}
	sent, doc := make(chan struct{}), e.cause.failure.encode(e.rank)
	e.cause.told = append(e.cause.told, sent)
	e.enqueue(p, frame{header: header{kind: kindCause, size: uint64(len(doc))}, payload: doc, sent: sent})
}

// hearCause takes in why an operation of p's has failed. The mutex is held.
func (e *Endpoint) hearCause(p *peer, f *Failure) {
	if f.Rank != p.rank {
		p.cause = cause{failure: f, at: time.Now()}
	}
}

// rootCause is the failure at the root of f, which says that p is gone: f itself, or what p has told of shortly before.
func (p *peer) rootCause(f *Failure) *Failure {
	if !p.cause.isRecent() {
		return f
	}
	first := p.cause.failure
	root := &Failure{Kind: f.Kind, Rank: first.Rank, Text: first.Text, Told: true, Finder: first.Finder}
	switch first.Kind {
	case PeerFailed, Left:
	case Aborted:
		root.Text = "aborted another group: " + first.Text
	case Mismatched, Deadlocked, Absent: // in which nobody is at fault for certain
		root = &Failure{Kind: f.Kind, Rank: f.Rank, Text: f.Text + "; on another group it had failed before: " + first.Error(), Err: f.Err}
	}
	return root
}

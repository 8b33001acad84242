package remote

import (
	"io"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// A report is what gorun says while it runs: how many nodes the job needs from now on, or 0 for a Heartbeat.
type report struct{ least int }

// follow takes what gorun says, and returns its Outcome in JSON; nil: it has said none.
func follow(r io.Reader, said func(report)) []byte {
	for {
		kind, payload, err := frame.Read(r)
		if err != nil {
			return nil
		}
		switch kind {
		case frame.Ended:
			return payload
		case frame.Heartbeat:
			said(report{})
		case frame.Scaled:
			least, err := frame.ParseScaled(payload)
			if err != nil {
				return nil
			}
			said(report{least})
		default:
			return nil
		}
	}
}

func (a *proxy) onReport(r report) {
	a.heard = time.Now()
	switch {
	case a.lost:
	case r.least > 0:
		a.to.Put(frame.AppendScaled(nil, r.least))
	default:
		a.beat()
	}
}

// beat gives the launcher a sign of life, unless something is on its way.
func (a *proxy) beat() {
	if a.to.Full(0) == nil {
		a.send(frame.Heartbeat, nil)
	}
}

// isFrozen reports whether gorun runs, and has given no sign of life for so long that the launcher takes it for lost.
func (a *proxy) isFrozen() bool {
	return a.outcome == nil && !a.heard.IsZero() && time.Since(a.heard) >= a.job.Silence
}

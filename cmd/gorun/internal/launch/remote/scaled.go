package remote

import (
	"io"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// follow takes what gorun says, and returns its Outcome in JSON; nil: it has said none.
func follow(r io.Reader, scaled func(least int)) []byte {
	for {
		kind, payload, err := frame.Read(r)
		switch {
		case err != nil:
			return nil
		case kind == frame.Ended:
			return payload
		case kind != frame.Scaled:
			return nil
		}
		least, err := frame.ParseScaled(payload)
		if err != nil {
			return nil
		}
		scaled(least)
	}
}

// passScaled passes to the loop how many nodes the job needs, and returns when the loop has it. So that comes before the outcome.
func (a *proxy) passScaled(least int) {
	select {
	case a.scaled <- least:
	case <-a.over:
	}
}

func (a *proxy) onScaled(least int) {
	if !a.lost {
		a.to.Put(frame.AppendScaled(nil, least))
	}
}

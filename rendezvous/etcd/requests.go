package etcd

import (
	"context"
	"time"
)

// A request is what takes its time: etcd is asked, as a rule. The machine asks for it, an executor carries it out, and it comes back to
// the machine as an event with what it has found.
type request interface {
	do(ctx context.Context, x *executor) error // notes in the request what it finds
	done(m *machine, err error)                // takes that, or the error with which do has failed
}

// A kind is a kind of request. At most one of a kind is under way.
type kind string

const (
	leasing     kind = "lease"
	reading     kind = "read"
	enrolling   kind = "enrol"
	campaigning kind = "campaign"
	deciding    kind = "decide"
	publishing  kind = "publish"
	reporting   kind = "report"
	evicting    kind = "evict"
	explaining  kind = "explain"
	restoring   kind = "restore"
	retaining   kind = "retain"
	dating      kind = "date"
)

// An executor carries out requests, each in a goroutine of its own. It has no state.
type executor struct {
	writer
	awaitFreeRank func(ctx context.Context, rank int)                                        // returns when nobody has the rank, or ctx ends
	hasEnded      func(ctx context.Context, key, addr string) bool                           // asks once more whether an agent has ended
	explain       func(ctx context.Context) error                                            // Config.Explain
	pause         func(ctx context.Context, d time.Duration)                                 // returns early if ctx ends
	within        func(context.Context, time.Duration) (context.Context, context.CancelFunc) // bounds a part of a request
}

func (e answered) apply(m *machine) { e.done(m, e.err) }

package node

import (
	"context"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A view is a job as it was at one revision. It does not change.
type view struct {
	rev         int64
	config      jobConfig
	leader      *leaderDoc // nil: none
	leaderRev   int64      // at which it was elected
	leaderLease store.Lease
	current     *currentDoc // nil: no round has formed
	currentRev  int64       // at which it was written; 0: it is not
	state       *stateDoc   // nil: the job is not closed
	stateLease  store.Lease
	lost        lostDoc // zero: nobody has said that the store had lost a job
	status      statusDoc
	limits      *limitsDoc // nil: those of the nodes' flags
	refusal     refusalDoc // the last one; zero: none
	ownRev      int64      // at which this node was written; 0: it is not
	round       *roundDoc  // the current one, for nodes like this one; nil: none of them is in it, or the job is closed

	whole bool // it is what a leader reads
	nodeTable
}

// read reads w's job at one revision, for w's node. What the view before has, and has not changed, is not read again.
func read(ctx context.Context, w *writer, whole bool, before *view) (*view, error) {
	next := 1
	if before.current != nil {
		next = before.current.Round + 1
	}
	return readWith(ctx, w, whole, before, next)
}

// readWith reads the documents of round next as well, which is the current one unless there have been more since before.
func readWith(ctx context.Context, w *writer, whole bool, before *view, next int) (*view, error) {
	k := w.keys
	queries := []store.Query{below(k.job()), one(k.round(next, initial(w.key))), one(k.node(w.key))}
	if whole {
		queries = append(queries, before.readChanges(k)...)
	}
	answer, err := w.store.Read(ctx, queries...)
	if err != nil {
		return nil, err
	}
	v := &view{rev: answer.Rev, whole: whole, ownRev: answer.Found[2].Only().Written}
	for _, kv := range answer.Found[0].KVs {
		if known := before.config; kv.Key == k.config() && known.same(jobConfig{rev: kv.Written, lease: kv.Lease}) {
			v.config = known
			continue
		}
		if err := v.job(k, kv); err != nil {
			return nil, err
		}
	}
	if v.current != nil && v.state == nil {
		switch kv := answer.Found[1].Only(); {
		case v.sameRound(before):
			v.round = before.round
		case v.current.Round != next:
			return readWith(ctx, w, whole, before, v.current.Round)
		case kv.Written > 0:
			if v.round, err = pointer(decode[roundDoc](kv)); err != nil {
				return nil, err
			}
		}
	}
	if whole {
		switch all, err := v.applyChanges(k, before, answer.Found[3:]); {
		case !all:
			return read(ctx, w, whole, new(view))
		case err != nil:
			return nil, err
		}
	}
	return v, nil
}

// enrolled is the view after this node has enrolled. It has only what is of the same job: the one that was read may have ended meanwhile, and
// another one may have begun.
func (v *view) enrolled(in enrolled) *view {
	var now view
	if !in.begins && in.config.same(v.config) {
		now = *v
		now.whole, now.nodeTable = false, nodeTable{}
	}
	now.rev, now.config, now.ownRev = in.rev, in.config, in.rev
	return &now
}

func (v *view) job(k keys, kv store.KV) (err error) {
	switch kv.Key {
	case k.config():
		v.config, err = readJobConfig(kv)
	case k.leader():
		v.leaderRev, v.leaderLease = kv.Written, kv.Lease
		v.leader, err = pointer(decode[leaderDoc](kv))
	case k.current():
		v.currentRev = kv.Written
		v.current, err = pointer(decode[currentDoc](kv))
	case k.state():
		v.stateLease = kv.Lease
		v.state, err = pointer(decode[stateDoc](kv))
	case k.lost():
		v.lost, err = decode[lostDoc](kv)
	case k.status():
		v.status, err = decode[statusDoc](kv)
	case k.limits():
		v.limits, err = pointer(decode[limitsDoc](kv))
	case k.refusal():
		v.refusal, _ = decode[refusalDoc](kv) // for people: nothing depends on it
	}
	return err
}

func pointer[T any](doc T, err error) (*T, error) { return &doc, err }

// assignment is what the node with that key has in the current round.
func (v *view) assignment(key string) (a assignment, member bool) {
	if v.round != nil {
		a, member = v.round.Assignments[key]
	}
	return a, member
}

// sameRound reports whether the current round is what it was before.
func (v *view) sameRound(before *view) bool {
	now, then := v.current, before.current
	return now != nil && then != nil && now.Round == then.Round && now.ID == then.ID
}

package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A writer reads and writes for one node of one job.
type writer struct {
	store  store.Store
	keys   keys
	key    string         // of the node
	random func(b []byte) // fills b; nil: as package rand does
}

// outcomeRetention is how long a closed job's outcome is kept, for nodes that come late or come back. After it the run ID is free.
const outcomeRetention = time.Hour

// membersChecked is how many members a transaction can hold against what was read; etcd takes 128 operations. Where
// there are more, one that has changed meanwhile is found by the news of it.
const membersChecked = 100

// register writes anew what is to be known of the node, at the revision that it returns, if it was written at rev and
// the settings are as they were. A request that a member of the store carries out late, when the node has gone on,
// changes nothing.
func (w *writer) register(ctx context.Context, lease store.Lease, self nodeDoc, config jobConfig, rev int64) (int64, error) {
	key := w.keys.node(w.key)
	for {
		answer, err := w.when(append(w.isStill(config), isAt(key, rev))...).put(key, self, lease).orGet(one(key)).commit(ctx)
		if err != nil {
			return 0, err
		}
		if answer.Done {
			return answer.Rev, nil
		}
		switch is := answer.Found[0].Only(); {
		case matches(is, self, lease): // the store may have been asked twice
			return is.Written, nil
		case is.Written == 0 || is.Written == rev:
			return 0, errForgotten
		default: // nobody else writes it
			rev = is.Written
		}
	}
}

// form writes a round, and that it is the current one, if its members are as they were read.
func (w *writer) form(ctx context.Context, v *view, f rendezvous.Formed, token string) error {
	k, lease := w.keys, v.config.lease
	t := w.asLeader(v).put(k.current(), currentDoc{Round: f.ID, ID: w.newKey()}, lease)
	t.deleteBelow(k.roundOf(f.ID-1), k.reports())
	for _, m := range f.Members[:min(len(f.Members), membersChecked)] {
		t.When = append(t.When, isAt(k.node(m.Key), v.nodes[m.Key].rev))
	}
	docs := roundDocs(&f, token)
	for _, c := range slices.Sorted(maps.Keys(docs)) {
		t.put(k.round(f.ID, c), docs[c], lease)
	}
	return t.try(ctx)
}

// close writes how the job has ended and when, which is all that is kept of it.
func (w *writer) close(ctx context.Context, v *view, outcome rendezvous.Outcome, at time.Time) error {
	lease, _, err := w.store.Keep(ctx, 0, outcomeRetention)
	if err != nil {
		return err
	}
	state := stateDoc{Job: v.config.Job, Outcome: outcome, At: at.UTC()}
	answer, err := w.asLeader(v).put(w.keys.state(), state, lease).delete(w.keys.config()).deleteRounds().
		orGet(one(w.keys.state())).commit(ctx)
	if err != nil || answer.Done || answer.Found[0].Only().Lease == lease {
		return err
	}
	return w.revoke(ctx, lease)
}

// deleteRounds deletes what rounds leave.
func (t *txn) deleteRounds() *txn {
	k := t.w.keys
	return t.delete(k.current(), k.status(), k.limits(), k.refusal(), k.drain()).deleteBelow(k.rounds(), k.reports())
}

// revision is the store's. It is asked for as what would write is, which no member answers from an older state.
func (w *writer) revision(ctx context.Context) (int64, error) {
	const never = -1
	answer, err := w.when(isAt(w.keys.config(), never)).delete(w.keys.config()).commit(ctx)
	return answer.Rev, err
}

// isStill is what holds as long as the store has these settings. A store that has lost its data may count to the same
// revision again, but it gives out other leases.
func (w *writer) isStill(s jobConfig) []store.Cond {
	return []store.Cond{isAt(w.keys.config(), s.rev), isLeased(w.keys.config(), s.lease)}
}

// asLeader is for what holds only as long as the node is the leader that it was in v, and nothing has been decided since.
func (w *writer) asLeader(v *view) *txn {
	k := w.keys
	return w.when(isLeased(k.leader(), v.leaderLease), isAt(k.leader(), v.leaderRev), isAt(k.current(), v.currentRev), isMissing(k.state()))
}

// leave takes the node out of the job, and out of the round unless that is 0: the others get its report. When the last node has
// left a job that is not closed, nothing is left of the job.
func (w *writer) leave(ctx context.Context, v *view, lease store.Lease, round int, report reportDoc) error {
	t := w.when().delete(w.keys.node(w.key))
	if round > 0 {
		t.put(w.keys.report(round, w.key), report, v.config.lease)
	}
	if err := t.try(ctx); err != nil {
		return err
	}
	if v.state == nil {
		clear := w.when(isMissing(w.keys.state()), hasNoKeys(w.keys.nodes())).deleteBelow(w.keys.root)
		if err := clear.try(ctx); err != nil {
			return err
		}
	}
	return w.revoke(ctx, lease)
}

// revoke ends a lease, if that has not happened.
func (w *writer) revoke(ctx context.Context, lease store.Lease) error {
	_, err := w.store.Commit(ctx, store.Txn{End: lease})
	return err
}

// evict deletes what is leased by another node, which has ended.
func (w *writer) evict(ctx context.Context, key string) error {
	answer, err := w.store.Read(ctx, one(w.keys.node(key)))
	if err != nil {
		return err
	}
	return w.revoke(ctx, answer.Found[0].Only().Lease)
}

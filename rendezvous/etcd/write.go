package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// A writer reads and writes for one node of one job.
type writer struct {
	client store
	keys   keys
	key    string         // of the node
	random func(b []byte) // fills b; nil: as package rand does
}

// A store is what a writer uses of etcd's client.
type store interface {
	clientv3.KV
	Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error)
	Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error)
	KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error)
	TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error)
}

// outcomeRetention is how long a closed job's outcome is kept, for nodes that come late or come back. After it the run ID is free.
const outcomeRetention = time.Hour

// membersChecked is how many members a transaction can hold against what was read; etcd takes 128 operations. Where
// there are more, one that has changed meanwhile is found by the news of it.
const membersChecked = 100

// register writes anew what is to be known of the node, at the revision that it returns, if it was written at rev and the settings
// are as they were. A request that a member of etcd carries out late, when the node has gone on, changes nothing.
func (w *writer) register(ctx context.Context, lease clientv3.LeaseID, self nodeDoc, config jobConfig, rev int64) (int64, error) {
	key := w.keys.node(w.key)
	for {
		answer, err := w.when(append(w.isStill(config), isAt(key, rev))...).put(key, self, lease).orGet(clientv3.OpGet(key)).commit(ctx)
		if err != nil {
			return 0, err
		}
		if answer.Succeeded {
			return answer.Header.Revision, nil
		}
		switch is := onlyKey(answer.Responses[0]); {
		case matches(is, self, lease): // etcd may have been asked twice
			return is.ModRevision, nil
		case is == nil || is.ModRevision == rev:
			return 0, errForgotten
		default: // nobody else writes it
			rev = is.ModRevision
		}
	}
}

// form writes a round, and that it is the current one, if its members are as they were read.
func (w *writer) form(ctx context.Context, v *view, f rendezvous.Formed, token string) error {
	k, lease := w.keys, v.config.lease
	t := w.asLeader(v).put(k.current(), currentDoc{Round: f.ID, ID: w.newKey()}, lease)
	t.deleteBelow(k.roundOf(f.ID-1), k.reports())
	for _, m := range f.Members[:min(len(f.Members), membersChecked)] {
		t.when = append(t.when, isAt(k.node(m.Key), v.nodes[m.Key].rev))
	}
	docs := roundDocs(&f, token)
	for _, c := range slices.Sorted(maps.Keys(docs)) {
		t.put(k.round(f.ID, c), docs[c], lease)
	}
	return t.try(ctx)
}

// close writes how the job has ended and when, which is all that is kept of it.
func (w *writer) close(ctx context.Context, v *view, outcome rendezvous.Outcome, at time.Time) error {
	granted, err := w.client.Grant(ctx, seconds(outcomeRetention))
	if err != nil {
		return err
	}
	state := stateDoc{Job: v.config.Job, Outcome: outcome, At: at.UTC()}
	answer, err := w.asLeader(v).put(w.keys.state(), state, granted.ID).delete(w.keys.config()).deleteRounds().
		orGet(clientv3.OpGet(w.keys.state())).commit(ctx)
	if err != nil || answer.Succeeded || leaseOf(onlyKey(answer.Responses[0])) == granted.ID {
		return err
	}
	return w.revoke(ctx, granted.ID)
}

// deleteRounds deletes what rounds leave.
func (t *txn) deleteRounds() *txn {
	k := t.w.keys
	return t.delete(k.current(), k.status(), k.limits(), k.refusal(), k.drain()).deleteBelow(k.rounds(), k.reports())
}

// revision is etcd's. It is asked for as what would write is, which no member answers from an older state.
func (w *writer) revision(ctx context.Context) (int64, error) {
	never := clientv3.Compare(clientv3.CreateRevision(w.keys.config()), "<", 0)
	answer, err := w.when(never).delete(w.keys.config()).commit(ctx)
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// isStill is what holds as long as etcd has these settings. An etcd that has lost its data may count to the same revision again,
// but it gives out other leases.
func (w *writer) isStill(s jobConfig) []clientv3.Cmp {
	return []clientv3.Cmp{isAt(w.keys.config(), s.rev), isLeased(w.keys.config(), s.lease)}
}

// asLeader is for what holds only as long as the node is the leader that it was in v, and nothing has been decided since.
func (w *writer) asLeader(v *view) *txn {
	k := w.keys
	elected := clientv3.Compare(clientv3.CreateRevision(k.leader()), "=", v.leaderRev)
	return w.when(isLeased(k.leader(), v.leaderLease), elected, isAt(k.current(), v.currentRev), isMissing(k.state()))
}

// leave takes the node out of the job, and out of the round unless that is 0: the others get its report. When the last node has
// left a job that is not closed, nothing is left of the job.
func (w *writer) leave(ctx context.Context, v *view, lease clientv3.LeaseID, round int, report reportDoc) error {
	t := w.when().delete(w.keys.node(w.key))
	if round > 0 {
		t.put(w.keys.report(round, w.key), report, v.config.lease)
	}
	t.do(clientv3.OpGet(w.keys.nodes(), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	answer, err := t.commit(ctx)
	if err != nil {
		return err
	}
	if others := answer.Responses[len(t.then)-1].GetResponseRange().Kvs; len(others) == 0 {
		clear := w.when(isMissing(w.keys.state()), hasKeys(w.keys.nodes(), false)).deleteBelow(w.keys.root)
		if err := clear.try(ctx); err != nil {
			return err
		}
	}
	return w.revoke(ctx, lease)
}

// revoke ends a lease, if that has not happened.
func (w *writer) revoke(ctx context.Context, lease clientv3.LeaseID) error {
	_, err := w.client.Revoke(ctx, lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

// evict deletes what is leased by another node, which has ended.
func (w *writer) evict(ctx context.Context, key string) error {
	answer, err := w.client.Get(ctx, w.keys.node(key))
	if err != nil || len(answer.Kvs) == 0 {
		return err
	}
	return w.revoke(ctx, clientv3.LeaseID(answer.Kvs[0].Lease))
}

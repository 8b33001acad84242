package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
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
	node, err := encode(key, self)
	if err != nil {
		return 0, err
	}
	for {
		answer, err := w.client.Txn(ctx).
			If(append(w.isStill(config), clientv3.Compare(clientv3.ModRevision(key), "=", rev))...).
			Then(clientv3.OpPut(key, node, clientv3.WithLease(lease))).
			Else(clientv3.OpGet(key)).
			Commit()
		if err != nil {
			return 0, err
		}
		if answer.Succeeded {
			return answer.Header.Revision, nil
		}
		switch is := onlyKey(answer.Responses[0]); {
		case is.equals(node, lease): // etcd may have been asked twice
			return is.rev(), nil
		case is == nil || is.rev() == rev:
			return 0, errForgotten
		default: // nobody else writes it
			rev = is.rev()
		}
	}
}

// campaign makes the node the leader if there is none, and the job has this node.
func (w *writer) campaign(ctx context.Context, lease clientv3.LeaseID, self leaderDoc) error {
	doc, err := encode(w.keys.leader(), self)
	if err != nil {
		return err
	}
	_, err = w.client.Txn(ctx).
		If(
			clientv3.Compare(clientv3.CreateRevision(w.keys.leader()), "=", 0),
			clientv3.Compare(clientv3.LeaseValue(w.keys.node(w.key)), "=", lease),
		).
		Then(clientv3.OpPut(w.keys.leader(), doc, clientv3.WithLease(lease))).
		Commit()
	return err
}

// report writes how the node's part of a round has ended, unless it has done that or the job is closed.
func (w *writer) report(ctx context.Context, v *view, round int, doc reportDoc) error {
	key := w.keys.report(round, w.key)
	text, err := encode(key, doc)
	if err != nil {
		return err
	}
	_, err = w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0), clientv3.Compare(clientv3.CreateRevision(w.keys.state()), "=", 0)).
		Then(clientv3.OpPut(key, text, v.lease())).
		Commit()
	return err
}

// putStatus writes what the job waits for, for people.
func (w *writer) putStatus(ctx context.Context, v *view, wait string) error {
	text, err := encode(w.keys.status(), statusDoc{wait})
	if err != nil {
		return err
	}
	_, err = w.client.Txn(ctx).If(w.asLeader(v)...).Then(clientv3.OpPut(w.keys.status(), text, v.lease())).Commit()
	return err
}

// probe asks the members of the current round to find out whether they reach each other.
func (w *writer) probe(ctx context.Context, v *view) error {
	text, err := encode(w.keys.probe(), probeDoc{v.current.Round})
	if err != nil {
		return err
	}
	_, err = w.client.Txn(ctx).If(w.asLeader(v)...).Then(clientv3.OpPut(w.keys.probe(), text, v.lease())).Commit()
	return err
}

// end says that the current round is over.
func (w *writer) end(ctx context.Context, v *view, why rendezvous.Ending) error {
	current, err := encode(w.keys.current(), currentDoc{
		Round: v.current.Round, ID: v.current.ID, Restarts: v.current.Restarts, Restored: v.current.Restored,
		Over: &ending{why.Why, why.Restarts, why.Lost, why.Soon, why.Apart},
	})
	if err != nil {
		return err
	}
	_, err = w.client.Txn(ctx).If(w.asLeader(v)...).Then(clientv3.OpPut(w.keys.current(), current, v.lease())).Commit()
	return err
}

// form writes a round, and that it is the current one, if its members are as they were read.
func (w *writer) form(ctx context.Context, v *view, f rendezvous.Formed, token string) error {
	when := w.asLeader(v)
	for _, m := range f.Members[:min(len(f.Members), membersChecked)] {
		when = append(when, clientv3.Compare(clientv3.ModRevision(w.keys.node(m.Key)), "=", v.nodeRev[m.Key]))
	}
	current, err := encode(w.keys.current(), currentDoc{Round: f.ID, ID: w.newKey(), Restarts: f.Restarts})
	if err != nil {
		return err
	}
	then := []clientv3.Op{
		clientv3.OpPut(w.keys.current(), current, v.lease()),
		clientv3.OpDelete(w.keys.roundOf(f.ID-1), clientv3.WithPrefix()),
		clientv3.OpDelete(w.keys.reports(), clientv3.WithPrefix()),
	}
	if f.ID > 1 && !v.established {
		then = append(then, clientv3.OpPut(w.keys.established(), establishedText, v.lease()))
	}
	docs := roundDocs(&f, token)
	for _, c := range slices.Sorted(maps.Keys(docs)) {
		key := w.keys.round(f.ID, c)
		text, err := encode(key, docs[c])
		if err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(key, text, v.lease()))
	}
	_, err = w.client.Txn(ctx).If(when...).Then(then...).Commit()
	return err
}

// establish writes that the job has lasted.
func (w *writer) establish(ctx context.Context, v *view) error {
	_, err := w.client.Txn(ctx).If(w.asLeader(v)...).Then(clientv3.OpPut(w.keys.established(), establishedText, v.lease())).Commit()
	return err
}

// close writes how the job has ended and when, which is all that is kept of it.
func (w *writer) close(ctx context.Context, v *view, outcome rendezvous.Outcome, at time.Time) error {
	state, err := encode(w.keys.state(), stateDoc{Job: v.config.Job, Outcome: outcome, At: at.UTC(), Established: v.established})
	if err != nil {
		return err
	}
	granted, err := w.client.Grant(ctx, int64(outcomeRetention.Seconds()))
	if err != nil {
		return err
	}
	answer, err := w.client.Txn(ctx).If(w.asLeader(v)...).Then(
		clientv3.OpPut(w.keys.state(), state, clientv3.WithLease(granted.ID)),
		clientv3.OpDelete(w.keys.config()),
		clientv3.OpDelete(w.keys.established()),
		clientv3.OpDelete(w.keys.current()),
		clientv3.OpDelete(w.keys.status()),
		clientv3.OpDelete(w.keys.probe()),
		clientv3.OpDelete(w.keys.rounds(), clientv3.WithPrefix()),
		clientv3.OpDelete(w.keys.reports(), clientv3.WithPrefix()),
	).Else(clientv3.OpGet(w.keys.state())).Commit()
	if err != nil || answer.Succeeded || onlyKey(answer.Responses[0]).lease() == granted.ID {
		return err
	}
	return w.revoke(ctx, granted.ID)
}

// stepDown deletes job/leader, if it is still what this node wrote as the leader in v.
func (w *writer) stepDown(ctx context.Context, v *view) error {
	_, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.LeaseValue(w.keys.leader()), "=", v.leaderLease)).
		Then(clientv3.OpDelete(w.keys.leader())).
		Commit()
	return err
}

// stored is what etcd has of a key; nil: nothing. It tells whether a request has found what it did itself: etcd may have been asked
// twice. (etcd leaves the lease out where only keys are asked for.)
type stored mvccpb.KeyValue

// onlyKey is what an answer about one key says.
func onlyKey(answer *pb.ResponseOp) *stored {
	if kvs := answer.GetResponseRange().Kvs; len(kvs) > 0 {
		return (*stored)(kvs[0])
	}
	return nil
}

func (f *stored) lease() clientv3.LeaseID {
	if f == nil {
		return 0
	}
	return clientv3.LeaseID(f.Lease)
}

// rev is the revision at which it was written; 0: never.
func (f *stored) rev() int64 {
	if f == nil {
		return 0
	}
	return f.ModRevision
}

// equals reports whether etcd has that text under that lease.
func (f *stored) equals(text string, lease clientv3.LeaseID) bool {
	return f != nil && string(f.Value) == text && f.lease() == lease
}

// revision is etcd's. It is asked for as what would write is, which no member answers from an older state.
func (w *writer) revision(ctx context.Context) (int64, error) {
	answer, err := w.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(w.keys.config()), "<", 0)). // never
		Then(clientv3.OpDelete(w.keys.config())).
		Commit()
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// lease has what is written go with all else that is of the job.
func (v *view) lease() clientv3.OpOption { return clientv3.WithLease(v.config.lease) }

// isStill is what holds as long as etcd has these settings. An etcd that has lost its data may count to the same revision again,
// but it gives out other leases.
func (w *writer) isStill(s jobConfig) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(w.keys.config()), "=", s.rev),
		clientv3.Compare(clientv3.LeaseValue(w.keys.config()), "=", s.lease),
	}
}

// asLeader is what holds as long as the node is the leader that it was in v, and nothing has been decided since.
func (w *writer) asLeader(v *view) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.LeaseValue(w.keys.leader()), "=", v.leaderLease),
		clientv3.Compare(clientv3.CreateRevision(w.keys.leader()), "=", v.leaderRev),
		clientv3.Compare(clientv3.ModRevision(w.keys.current()), "=", v.currentRev),
		clientv3.Compare(clientv3.CreateRevision(w.keys.state()), "=", 0),
	}
}

// leave takes the node out of the job, and out of the round unless that is 0: the others are told why. When the last node has
// left a job that is not closed, nothing is left of the job.
func (w *writer) leave(ctx context.Context, v *view, lease clientv3.LeaseID, round int, why error) error {
	then := []clientv3.Op{clientv3.OpDelete(w.keys.node(w.key))}
	if round > 0 {
		key, left := w.keys.report(round, w.key), rendezvous.OutcomeOf(why)
		text, err := encode(key, reportDoc{Left: &left})
		if err != nil {
			return err
		}
		then = append(then, clientv3.OpPut(key, text, v.lease()))
	}
	then = append(then, clientv3.OpGet(w.keys.nodes(), clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	answer, err := w.client.Txn(ctx).Then(then...).Commit()
	if err != nil {
		return err
	}
	if others := answer.Responses[len(then)-1].GetResponseRange().Kvs; len(others) == 0 {
		if err := w.clear(ctx); err != nil {
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

// clear deletes a job that has no nodes, and has not been closed.
func (w *writer) clear(ctx context.Context) error {
	_, err := w.client.Txn(ctx).
		If(
			clientv3.Compare(clientv3.CreateRevision(w.keys.state()), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(w.keys.nodes()).WithPrefix(), "=", 0),
		).
		Then(clientv3.OpDelete(w.keys.root, clientv3.WithPrefix())).
		Commit()
	return err
}

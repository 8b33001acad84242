package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A view is a job as it was at one revision. It does not change.
type view struct {
	rev         int64
	config      jobConfig
	leader      *leaderDoc // nil: none
	leaderRev   int64      // at which it was elected
	leaderLease clientv3.LeaseID
	current     *currentDoc // nil: no round has formed
	currentRev  int64       // at which it was written; 0: it is not
	state       *stateDoc   // nil: the job is not closed
	stateLease  clientv3.LeaseID
	lost        lostDoc // zero: nobody has said that etcd had lost a job
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
	k, next := w.keys, 1
	if before.current != nil {
		next = before.current.Round + 1
	}
	gets := []clientv3.Op{
		clientv3.OpGet(k.job(), clientv3.WithPrefix()),
		clientv3.OpGet(k.round(next, initial(w.key))),
		clientv3.OpGet(k.node(w.key), clientv3.WithKeysOnly()),
	}
	if whole {
		gets = append(gets, before.readChanges(k)...)
	}
	answer, err := w.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	v := &view{rev: answer.Header.Revision, whole: whole, ownRev: onlyKey(answer.Responses[2]).GetModRevision()}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		if known := before.config; string(kv.Key) == k.config() && known.same(jobConfig{rev: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease)}) {
			v.config = known
			continue
		}
		if err := v.job(k, kv); err != nil {
			return nil, err
		}
	}
	if v.current != nil && v.state == nil {
		if v.round, err = v.readRound(ctx, w, before, next, answer.Responses[1].GetResponseRange().Kvs); err != nil {
			return nil, err
		}
	}
	if whole {
		switch all, err := v.applyChanges(k, before, answer.Responses[3:]); {
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

func (v *view) job(k keys, kv *mvccpb.KeyValue) (err error) {
	switch string(kv.Key) {
	case k.config():
		v.config, err = readJobConfig(kv)
	case k.leader():
		v.leaderRev, v.leaderLease = kv.CreateRevision, clientv3.LeaseID(kv.Lease)
		v.leader, err = pointer(decode[leaderDoc](kv))
	case k.current():
		v.currentRev = kv.ModRevision
		v.current, err = pointer(decode[currentDoc](kv))
	case k.state():
		v.stateLease = clientv3.LeaseID(kv.Lease)
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

// readRound finds the current round, which may be in the view before, or among kvs if its number is next.
func (v *view) readRound(ctx context.Context, w *writer, before *view, next int, kvs []*mvccpb.KeyValue) (*roundDoc, error) {
	if v.sameRound(before) {
		return before.round, nil
	}
	if v.current.Round != next {
		answer, err := w.client.Get(ctx, w.keys.round(v.current.Round, initial(w.key)), clientv3.WithRev(v.rev))
		if err != nil {
			return nil, err
		}
		kvs = answer.Kvs
	}
	if len(kvs) == 0 {
		return nil, nil
	}
	return pointer(decode[roundDoc](kvs[0]))
}

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

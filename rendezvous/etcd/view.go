package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// A view is a job as it was at one revision.
type view struct {
	rev         int64
	leader      *leaderDoc // nil: none
	leaderRev   int64      // at which it came to office
	leaderLease clientv3.LeaseID
	current     *currentDoc // nil: no round has formed
	currentRev  int64       // at which it was written; 0: it is not
	jobRev      int64       // at which the job's first round was formed
	state       *stateDoc   // nil: the job is not closed
	status      string
	round       *roundDoc // the current one; nil: none, or the job is closed

	// Only what a leader reads has:
	whole   bool
	nodes   []rendezvous.Candidate
	nodeRev map[string]int64 // at which nodes were written, by key
	reports []rendezvous.Report
	bad     []error // nodes and reports that are left out
}

// read reads the job at one revision. The round of the view before need not be read again if it still is the current one.
func read(ctx context.Context, client *clientv3.Client, k keys, whole bool, before *view) (*view, error) {
	gets := []clientv3.Op{clientv3.OpGet(k.job(), clientv3.WithPrefix())}
	if whole {
		gets = append(gets,
			clientv3.OpGet(k.nodes(), clientv3.WithPrefix()),
			clientv3.OpGet(k.reports(), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend)))
	}
	answer, err := client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	v := &view{rev: answer.Header.Revision, whole: whole}
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		if err := v.job(k, kv); err != nil {
			return nil, err
		}
	}
	if v.current != nil && v.state == nil {
		if v.round, err = readRound(ctx, client, k, v, before); err != nil {
			return nil, err
		}
	}
	if whole {
		v.readNodes(k, answer.Responses[1].GetResponseRange().Kvs)
		v.readReports(k, answer.Responses[2].GetResponseRange().Kvs)
	}
	return v, nil
}

func (v *view) job(k keys, kv *mvccpb.KeyValue) (err error) {
	switch string(kv.Key) {
	case k.leader():
		v.leaderRev, v.leaderLease = kv.CreateRevision, clientv3.LeaseID(kv.Lease)
		v.leader, err = pointer(decode[leaderDoc](kv))
	case k.current():
		v.currentRev, v.jobRev = kv.ModRevision, kv.CreateRevision
		v.current, err = pointer(decode[currentDoc](kv))
	case k.state():
		v.state, err = pointer(decode[stateDoc](kv))
	case k.status():
		var status statusDoc
		status, err = decode[statusDoc](kv)
		v.status = status.Wait
	}
	return err
}

func pointer[T any](doc T, err error) (*T, error) { return &doc, err }

// readRound reads the document of the current round as it was when v was read.
func readRound(ctx context.Context, client *clientv3.Client, k keys, v, before *view) (*roundDoc, error) {
	if before.round != nil && before.round.ID == v.current.Round && before.jobRev == v.jobRev {
		return before.round, nil
	}
	key := k.round(v.current.Round)
	answer, err := client.Get(ctx, key, clientv3.WithRev(v.rev))
	if err != nil {
		return nil, err
	}
	if len(answer.Kvs) == 0 {
		return nil, &DocumentError{key, errors.New("it is missing")}
	}
	return pointer(decode[roundDoc](answer.Kvs[0]))
}

func (v *view) readNodes(k keys, kvs []*mvccpb.KeyValue) {
	v.nodeRev = make(map[string]int64)
	for _, kv := range kvs {
		doc, err := decode[nodeDoc](kv)
		if err != nil {
			v.bad = append(v.bad, err)
			continue
		}
		key := strings.TrimPrefix(string(kv.Key), k.nodes())
		v.nodes = append(v.nodes, doc.candidate(key, kv.CreateRevision))
		v.nodeRev[key] = kv.ModRevision
	}
}

// readReports takes those on the current round; kvs are in the order of revision, which is that in which they came.
func (v *view) readReports(k keys, kvs []*mvccpb.KeyValue) {
	if v.current == nil {
		return
	}
	prefix := k.reportsOf(v.current.Round)
	for _, kv := range kvs {
		key, ours := strings.CutPrefix(string(kv.Key), prefix)
		if !ours {
			continue
		}
		doc, err := decode[reportDoc](kv)
		if err != nil {
			v.bad = append(v.bad, err)
			continue
		}
		v.reports = append(v.reports, rendezvous.Report{Key: key, Failure: doc.Failure, Left: doc.Left})
	}
}

// newlyBad is what there is to complain of that was not in before.
func (v *view) newlyBad(before *view) (news []error) {
	for _, err := range v.bad {
		if !slices.ContainsFunc(before.bad, func(e error) bool { return e.Error() == err.Error() }) {
			news = append(news, err)
		}
	}
	return news
}

package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A setting is what job/config says, as it was written at a revision; the zero value: there is none.
type setting struct {
	configDoc
	rev int64
}

// conflict says where the nodes' settings differ.
func (s configDoc) conflict(theirs configDoc) error {
	return s.Settings.Conflict(s.Host, theirs.Settings, theirs.Host)
}

// A conflictError is one of conflict.
type conflictError struct{ error }

// enrol registers the node, if the job's settings are its own, or are nobody's: then it sets them. known is what they were.
func (w *writer) enrol(ctx context.Context, lease clientv3.LeaseID, mine configDoc, self nodeDoc, known setting) error {
	for {
		now, err := w.tryEnrol(ctx, lease, mine, self, known)
		switch {
		case err != nil || now == nil:
			return err
		case now.rev == known.rev:
			return &conflictError{mine.conflict(now.configDoc)}
		}
		known = *now
	}
}

// tryEnrol returns nil, or the settings if they are not as known, or conflict. It looks for other nodes, of which there may
// be many, only if there is a conflict.
func (w *writer) tryEnrol(ctx context.Context, lease clientv3.LeaseID, mine configDoc, self nodeDoc, known setting) (*setting, error) {
	config, err := encode(w.keys.config(), mine)
	if err != nil {
		return nil, err
	}
	node, err := encode(w.keys.node(w.key), self)
	if err != nil {
		return nil, err
	}
	set, register := clientv3.OpPut(w.keys.config(), config), clientv3.OpPut(w.keys.node(w.key), node, clientv3.WithLease(lease))
	var when []clientv3.Cmp
	then := []clientv3.Op{register, set}
	switch {
	case known.rev == 0:
		when = []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(w.keys.config()), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(w.keys.state()), "=", 0),
		}
	case mine.conflict(known.configDoc) == nil:
		when = []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(w.keys.config()), "=", known.rev)}
		then = then[:1]
	default:
		when = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(w.keys.nodes()).WithPrefix(), "=", 0)}
	}
	answer, err := w.client.Txn(ctx).If(when...).Then(then...).Else(clientv3.OpGet(w.keys.config())).Commit()
	if err != nil || answer.Succeeded {
		return nil, err
	}
	kvs := answer.Responses[0].GetResponseRange().Kvs
	switch {
	case len(kvs) > 0:
		theirs, err := decode[configDoc](kvs[0])
		return &setting{theirs, kvs[0].ModRevision}, err
	case known.rev == 0: // the job has been closed
		return nil, nil
	}
	return &setting{}, nil
}

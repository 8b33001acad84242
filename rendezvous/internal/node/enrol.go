package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// An enrolment is how a node gets into a job: as one of its nodes if the job has any, and otherwise as the first one, which
// begins it. A node that differs from the job gets no place in it.
type enrolment struct {
	lease     store.Lease
	job       string        // that this node is in; empty: none
	mine      configDoc     // what the job's settings are to be
	self      nodeDoc       // what is to be known of the node
	retention time.Duration // for which what is written of a job outlasts its leader
	current   int64         // the revision of the current round, if the node is in it; 0: it is not
	over      string        // the job for whose nodes this one has waited in vain; empty: none
}

// A jobConfig is what job/config says, as it was written at a revision; the zero value: there is none.
type jobConfig struct {
	configDoc
	rev   int64
	lease store.Lease // of all that is written of the job
}

// same reports whether c and other are the same document of the same job.
func (c jobConfig) same(other jobConfig) bool { return c.rev == other.rev && c.lease == other.lease }

// A takenError says that another node has the node rank.
type takenError struct {
	rankDoc
	rank int
}

// Error is one line.
func (e *takenError) Error() string {
	return fmt.Sprintf("node rank %d is taken by %s: give this node another --node-rank, or none", e.rank, e.by())
}

// by is what people call the node that has it.
func (e *takenError) by() string { return rendezvous.Node{ID: e.ID, Host: e.Host}.Name() }

// errForgotten: the store has lost a job that has nodes, or the one that this node is in.
var errForgotten = errors.New("etcd does not know the job's settings")

// A desertedError says that the job has had a round, and none of its nodes is there. They come back if the store has
// not answered for longer than their leases last. If all of them have been killed, they do not.
type desertedError struct{ job string }

func (e *desertedError) Error() string { return "no node of the job is there" }

// A precondition is all that an enrolment depends on.
type precondition struct {
	config   jobConfig
	led      bool // there is a leader
	hasNodes bool // there are nodes
	closed   bool
	rank     rankDoc  // who has the node's rank
	rankRev  int64    // at which that was written; 0: nobody has it
	node     store.KV // what is known of the node
	current  int64    // the revision of the current round; 0: none
}

// An enrolled node is in the job with these settings, if there are any: otherwise the job has been closed.
type enrolled struct {
	config  jobConfig
	rev     int64
	begins  bool   // it is the first
	instead string // of the node with this key, which had its rank; empty: of none
}

// enrol registers the node. known is what the settings were, and led whether there was a leader, when the node last looked.
func (w *writer) enrol(ctx context.Context, e enrolment, known jobConfig, led bool) (in enrolled, err error) {
	s := precondition{config: known, led: led, hasNodes: led}
	if led != (known.rev > 0) || led && e.conflict(known) != nil {
		if s, err = w.precondition(ctx, e.self.Node.NodeRank); err != nil {
			return in, err
		}
	}
	for {
		begins, refusal := s.admit(e, w.key)
		switch {
		case errors.Is(refusal, errForgotten) && e.job == "" && s.config.rev == 0 && s.node.Written > 0: // it keeps others from beginning a job
			node := w.keys.node(w.key)
			return enrolled{}, errors.Join(refusal, w.when(isMissing(w.keys.config()), isAt(node, s.node.Written)).delete(node).try(ctx))
		case refusal != nil || s.closed:
			return enrolled{}, refusal
		case begins:
			in, err = w.begin(ctx, e, &s)
		default:
			in, err = w.joinExisting(ctx, e, &s)
		}
		if !errors.Is(err, errChanged) {
			return in, err
		}
	}
}

// admit reports whether the node begins the job, or fails if it may not be in it.
func (s *precondition) admit(e enrolment, key string) (begins bool, err error) {
	forgotten := s.config.rev == 0 && s.hasNodes || e.job != "" && s.config.Job != e.job
	switch {
	case s.closed:
		return false, nil
	case forgotten:
		return false, errForgotten
	case e.job == "" && !s.hasNodes && s.current > 0 && s.config.Job != e.over:
		return false, &desertedError{s.config.Job}
	case e.job == "" && !s.hasNodes:
		return true, nil
	}
	if err := e.conflict(s.config); err != nil {
		return false, &rendezvous.MisuseError{Err: err}
	}
	// The rank of a member of the current round is its own, also if it was away and a newcomer has taken the rank meanwhile.
	if member := e.current > 0 && e.current == s.current; s.isTaken(key) && !member {
		return false, &takenError{s.rank, e.self.Node.NodeRank}
	}
	return false, nil
}

// conflict says where the node's settings differ from the job's.
func (e *enrolment) conflict(job jobConfig) error {
	return e.mine.Settings.Conflict(job.Settings, job.Host)
}

// isTaken reports whether another node has the rank.
func (s *precondition) isTaken(key string) bool { return s.rankRev > 0 && s.rank.Key != key }

// errChanged: the store says something else by now.
var errChanged = errors.New("etcd has changed")

// begin makes a job of which the node is the first. Nothing is left of one before it.
func (w *writer) begin(ctx context.Context, e enrolment, s *precondition) (in enrolled, err error) {
	lease, _, err := w.store.Keep(ctx, 0, e.retention)
	if err != nil {
		return in, err
	}
	t := w.when(isMissing(w.keys.state()), hasNoKeys(w.keys.nodes())).put(w.keys.config(), e.mine, lease).deleteRounds()
	rev, err := w.tryEnrol(ctx, e, s, t)
	switch {
	case err == nil:
		return enrolled{config: jobConfig{e.mine, rev, lease}, rev: rev, begins: true}, nil
	case errors.Is(err, errChanged) && s.config.lease == lease: // by this request: the store may have been asked twice
		return enrolled{config: s.config, rev: s.node.Written, begins: true}, nil
	case errors.Is(err, errChanged):
		return in, errors.Join(err, w.revoke(ctx, lease))
	}
	return in, err // the job may have begun under this lease; otherwise it runs out
}

// joinExisting makes the node one of those that the job has. A leader is one of them; whether there are others is asked only if
// there is no leader, since they may be many.
func (w *writer) joinExisting(ctx context.Context, e enrolment, s *precondition) (in enrolled, err error) {
	t := w.when()
	if e.job == "" {
		others := w.keys.nodes()
		if s.led {
			others = w.keys.leader()
		}
		t.When = append(t.When, hasKeys(others))
	}
	in = enrolled{config: s.config}
	if s.isTaken(w.key) {
		in.instead = s.rank.Key
		t.When = append(t.When, isAt(w.keys.current(), s.current))
	}
	in.rev, err = w.tryEnrol(ctx, e, s, t)
	return in, err
}

// tryEnrol registers the node with t, at the revision that it returns, if the settings, the holder of the rank and what is known of the
// node are as s says, and t's conditions hold. Otherwise it fails with errChanged, and sets s to what there is now.
func (w *writer) tryEnrol(ctx context.Context, e enrolment, s *precondition, t *txn) (rev int64, err error) {
	t.When = append(t.When, w.isStill(s.config)...)
	t.When = append(t.When, isAt(w.keys.node(w.key), s.node.Written)) // or this request is late
	if r := e.self.Node.NodeRank; r >= 0 {
		t.When = append(t.When, isAt(w.keys.rank(r), s.rankRev))
	}
	answer, err := t.putNode(e).orGet(w.ask(e.self.Node.NodeRank)...).commit(ctx)
	switch {
	case err != nil:
		return 0, err
	case answer.Done:
		return answer.Rev, nil
	}
	was := s.config
	if *s, err = w.answered(answer.Found); err != nil {
		return 0, err
	}
	if was.rev > 0 && s.config.same(was) && matches(s.node, e.self, e.lease) {
		return s.node.Written, nil // the store may have been asked twice
	}
	return 0, errChanged
}

// putNode puts what the store is to know of the node.
func (t *txn) putNode(e enrolment) *txn {
	k, self := t.w.keys, e.self
	t.put(k.node(t.w.key), self, e.lease)
	if r := self.Node.NodeRank; r >= 0 {
		t.put(k.rank(r), rankDoc{Key: t.w.key, ID: self.Node.ID, Host: self.Node.Host}, e.lease)
	}
	return t
}

func (w *writer) precondition(ctx context.Context, rank int) (precondition, error) {
	answer, err := w.store.Read(ctx, w.ask(rank)...)
	if err != nil {
		return precondition{}, err
	}
	return w.answered(answer.Found)
}

// ask is how to find out about a precondition.
func (w *writer) ask(rank int) []store.Query {
	return []store.Query{
		one(w.keys.config()),
		one(w.keys.leader()),
		some(w.keys.nodes()),
		one(w.keys.state()),
		one(w.keys.rank(rank)), // -1 if the node asks for none: nobody has that rank
		one(w.keys.node(w.key)),
		one(w.keys.current()),
	}
}

func (w *writer) answered(found []store.Found) (s precondition, err error) {
	s.led, s.hasNodes, s.closed = found[1].Count > 0, found[2].Count > 0, found[3].Count > 0
	s.node, s.current = found[5].Only(), found[6].Only().Written
	if kv := found[0].Only(); kv.Written > 0 {
		if s.config, err = readJobConfig(kv); err != nil {
			return s, err
		}
	}
	if kv := found[4].Only(); kv.Written > 0 {
		s.rankRev = kv.Written
		s.rank, err = decode[rankDoc](kv)
	}
	return s, err
}

func readJobConfig(kv store.KV) (jobConfig, error) {
	doc, err := decode[configDoc](kv)
	return jobConfig{doc, kv.Written, kv.Lease}, err
}

// awaitFreeRank returns when nobody has a rank, or ctx ends.
func awaitFreeRank(ctx context.Context, s store.Store, key string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.Watch(ctx, store.Key(key), func([]store.Event) {
		if now, err := s.Read(ctx, one(key)); err == nil && now.Found[0].Count == 0 {
			cancel()
		}
	})
}

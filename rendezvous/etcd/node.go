package etcd

import (
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/gorun/gorun/rendezvous"
)

// A join is a Join that waits.
type join struct {
	self   rendezvous.Node
	port   rendezvous.Port // nil: it is reserved when this node has got rank 0
	answer chan joined     // has room for the one answer
}

type joined struct {
	round *rendezvous.Round
	err   error
}

// A membership is this node's part in a round that is not over.
type membership struct {
	id  int
	end func(why error) error
}

// reporting is the one report of this node on the round.
type reporting struct {
	doc      reportDoc
	recorded bool
	answers  []chan<- error // each has room for one
}

// codeUnformed is gorun's exit code for want of a round.
const codeUnformed = 75

func (l *loop) join(j *join) {
	if l.closed != nil {
		j.fail(l, l.closed)
		return
	}
	if err := l.listen(j.self.Reach()); err != nil {
		j.fail(l, err)
		return
	}
	l.joins = append(l.joins, j)
	if len(l.joins) == 1 {
		l.ask()
	}
}

// ask makes self say that the first Join waits, or that none does, which etcd need not know as long as the last one has got
// its round and the node is not registered anew.
func (l *loop) ask() {
	l.hangUp()
	l.told = ""
	if len(l.joins) == 0 {
		l.self.Joining = false
		return
	}
	l.refused, l.taken = false, taken{}
	j, port := l.joins[0], l.config.MasterPort
	if j.port != nil {
		port = j.port.Number()
	}
	l.self = nodeDoc{Node: node(j.self), Port: port, Door: l.end.Port(), Joining: true, Try: l.self.Try + 1}
}

// withdraw fails j, unless it has been answered.
func (l *loop) withdraw(j *join, err error) {
	i := slices.Index(l.joins, j)
	if i < 0 {
		return
	}
	j.fail(l, err)
	l.joins = slices.Delete(l.joins, i, i+1)
	if i == 0 {
		l.turnDown()
	}
}

// turnDown has the next Join wait instead of the one that has failed, for which a round may have formed.
func (l *loop) turnDown() {
	l.ask()
	if len(l.joins) == 0 && l.self.Try > 0 {
		l.self.Try++
	}
}

// reserve has the port for rank 0, unless there is one.
func (j *join) reserve(number int, f rendezvous.ReserveFunc) (err error) {
	if j.port == nil {
		j.port, err = rendezvous.Master{Addr: j.self.Reach(), Port: number}.Reserve(f)
	}
	return err
}

func (j *join) fail(l *loop, err error) {
	l.release(j.port)
	j.answer <- joined{err: err}
}

// release closes a port that nobody needs; nil: none.
func (l *loop) release(port rendezvous.Port) {
	if port != nil {
		l.check(port.Close())
	}
}

// check is for errors which nobody waits for.
func (l *loop) check(err error) {
	if err != nil {
		l.config.Log.Warn("master port", "error", err)
	}
}

// fail fails every Join that waits. The job is open.
func (l *loop) fail(err error) {
	if len(l.joins) == 0 {
		return
	}
	for _, j := range l.joins {
		j.fail(l, err)
	}
	l.joins = nil
	l.turnDown()
}

// finish closes the job on this node.
func (l *loop) finish(why error) {
	if l.closed != nil {
		return
	}
	l.closed = why
	l.endRound(why)
	l.fail(why)
	l.becomeFollower()
}

func (l *loop) endRound(why error) {
	if l.round == nil {
		return
	}
	l.check(l.round.end(why))
	l.round = nil
	if l.reporting != nil {
		l.reporting.answer(nil)
		l.reporting = nil
	}
}

// follow does what the newest view says.
func (l *loop) follow() {
	if !l.recall() {
		return
	}
	v := l.view
	if v.state != nil && l.job == "" {
		l.tooLate(v)
		return
	}
	if v.state != nil {
		l.finish(&rendezvous.ClosedError{Outcome: v.state.Outcome})
		return
	}
	if r := l.round; r != nil && (v.current.Round > r.id || v.current.Over != nil) {
		l.endRound(rendezvous.ErrNewRound)
	}
	if len(l.joins) == 0 {
		return
	}
	switch s, has := v.seat(l.etcd.key); {
	case !has || s.Try != l.self.Try:
		l.hangUp()
		if v.status != "" {
			l.say(v.status)
		}
	case v.current.Over != nil: // it was over before it was seen
		l.ask()
	default:
		l.prepare(v.round, s)
	}
}

// leaves is the round that must do without this node if it leaves now; 0: none.
func (l *loop) leaves() int {
	if _, has := l.view.seat(l.etcd.key); has && l.reporting == nil {
		return l.view.round.ID
	}
	return 0
}

// say says once what a Join waits for.
func (l *loop) say(reason string) {
	if len(l.joins) > 0 && reason != l.told {
		l.told = reason
		l.config.Waiting(reason)
	}
}

// report answers when the report is recorded, or of no consequence.
func (l *loop) report(round int, doc reportDoc, answer chan<- error) {
	switch {
	case l.round == nil || l.round.id != round:
		answer <- nil
	case l.reporting == nil:
		l.reporting = &reporting{doc: doc, answers: []chan<- error{answer}}
	case l.reporting.recorded:
		answer <- nil
	default:
		l.reporting.answers = append(l.reporting.answers, answer)
	}
}

// record lets etcd know of the report.
func (l *loop) record() {
	r := l.reporting
	if r == nil || r.recorded || l.forgotten {
		return
	}
	v, round := l.view, l.round.id
	l.start(recording, func(ctx context.Context) error {
		return l.etcd.report(ctx, v, round, r.doc)
	}, func(err error) {
		if errors.Is(err, rpctypes.ErrLeaseNotFound) { // the job is put back first
			l.dirty = true
			return
		}
		if err != nil && !isRefusal(err) {
			l.onOutage(err)
			return
		}
		r.recorded = err == nil
		r.answer(err)
	})
}

func (r *reporting) answer(err error) {
	for _, a := range r.answers {
		a <- err
	}
	r.answers = nil
}

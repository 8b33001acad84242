package node

import (
	"context"
	"slices"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A member is this node in the job.
type member struct {
	*common
	conn *connection

	joins    []*join // that wait; self describes the first
	entering *entering
	shown    string // of what a Join waits for

	self          nodeDoc        // what the store should know
	enrolledLease store.Lease    // under which the store knows of the node; 0: it does not
	enrolledTry   int            // self.Try that the store knows of
	claimed       []unreachedDoc // self.Unreached that it knows of
	sentLeaving   bool           // self.Leaving that it knows of
	nodeRev       int64          // at which that was written
	refused       *refusalDoc    // why there is no place for the node in the job; nil: none is refused
	shownRefusal  string         // why the last of the other nodes was refused
	takenBy       string         // key of the node that has this one's rank, perhaps a dead one that this one replaces; empty: none is known
	takenSince    time.Time      // when this node found that out
	deserted      string         // the job that has none of its nodes, of which this one is not yet; empty: there is no such job
	desertedSince time.Time      // when this node found that out

	round  int // that this node is in; 0: none
	report *report

	secret    string            // by which the agents of the job know each other
	monitored int64             // view.leaderRev of the leader to which there is a liveness connection; 0: none
	ended     map[string]string // agents that are no more: where they answered, by their keys

	peers      map[string]*peer
	warned     bool   // people have been warned of one that could never be reached
	confirming int    // confirmPeers that are under way
	rank0      string // key of the last agent that was called there, and has answered
}

// A join is a Join that waits.
type join struct {
	id   int
	self rendezvous.Node
	port int // 0: it is reserved when this node has got rank 0
}

// A report is the one report of this node on its round.
type report struct {
	doc      reportDoc
	recorded bool
	at       time.Time // when it was recorded last
	callers  []int     // of Report and Leave, who wait
}

func (e joinCalled) apply(m *stateMachine) {
	if m.closed != nil {
		m.emit(failJoin{e.id, m.closed})
		return
	}
	b := &m.member
	b.self.AgentPort = e.agentPort
	b.joins = append(b.joins, &join{e.id, e.self, e.port})
	if len(b.joins) > 1 {
		return
	}
	b.updateSelf()
	if v := m.conn.view; v.state != nil && m.conn.job == "" { // this node has read that before
		m.tooLate(v)
	}
}

// updateSelf makes self describe the first Join that waits, or say that none does. The latter is written to the store
// only with something else: a Join that has got its round is of no interest there.
func (b *member) updateSelf() {
	b.stopCalling()
	b.shown = ""
	if len(b.joins) == 0 {
		b.self.Joining = false
		return
	}
	b.refused, b.takenBy = nil, ""
	j, port := b.joins[0], b.config.MasterPort
	if j.port != 0 {
		port = j.port
	}
	b.self = nodeDoc{Node: j.self, Port: port, AgentPort: b.self.AgentPort, Joining: true, Leaving: b.self.Leaving, Try: b.self.Try + 1}
}

func (e joinCancelled) apply(m *stateMachine) { m.member.withdraw(e.id, e.err) }

// withdraw fails a Join, unless it has been answered.
func (b *member) withdraw(id int, err error) {
	i := slices.IndexFunc(b.joins, func(j *join) bool { return j.id == id })
	if i < 0 {
		return
	}
	b.emit(failJoin{id, err})
	b.joins = slices.Delete(b.joins, i, i+1)
	if i == 0 {
		b.nextJoin()
	}
}

// nextJoin has the next Join wait instead of the one that has failed, for which a round may have formed.
func (b *member) nextJoin() {
	b.updateSelf()
	if len(b.joins) == 0 && b.self.Try > 0 {
		b.self.Try++
	}
}

// fail fails every Join that waits. The job may be open.
func (b *member) fail(err error) {
	if len(b.joins) == 0 {
		return
	}
	for _, j := range b.joins {
		b.emit(failJoin{j.id, err})
	}
	b.joins = nil
	b.nextJoin()
}

func (b *member) endRound(why error) {
	if b.round == 0 {
		return
	}
	b.emit(endRound{why})
	b.round = 0
	if b.report != nil {
		b.answer(nil)
		b.report = nil
	}
}

// follow does what v says, which is of this node's job.
func (b *member) follow(v *view) {
	if b.round > 0 && (v.current.Round > b.round || v.current.Over != nil) {
		var why rendezvous.NewRoundError
		if over := v.current.Over; v.current.Round == b.round {
			why = rendezvous.NewRoundError{Why: over.Why, Failure: over.Failure, Gone: over.Gone}
		}
		b.endRound(&why)
	}
	b.showRefusal(v)
	if len(b.joins) == 0 {
		return
	}
	switch a, has := v.assignment(b.key); {
	case !has || a.Try != b.self.Try:
		b.stopCalling()
		if v.status.Wait != "" {
			b.show(v.status.Wait)
		}
	case v.current.Over != nil: // it was over before it was seen
		b.updateSelf()
	default:
		b.prepare(v.round, a)
	}
}

// startOver makes this node a newcomer.
func (b *member) startOver() {
	b.stopCalling()
	b.endRound(rendezvous.ErrNewRound)
	b.enrolledLease, b.sentLeaving = 0, false
}

// leaves is the round that must do without this node if it leaves now, and its report on that: why it leaves, unless
// all its workers have succeeded. 0: there is no such round, or the store has a report of this node. The next round may
// have formed already.
func (b *member) leaves(why error) (round int, doc reportDoc) {
	v := b.conn.view
	_, member := v.assignment(b.key)
	left := rendezvous.OutcomeOf(why)
	switch {
	case member && b.report != nil && b.report.recorded:
		return 0, reportDoc{}
	case member && b.report != nil && b.report.doc == reportDoc{}:
		return b.round, reportDoc{}
	case member:
		return v.round.ID, reportDoc{Left: &left}
	case b.enrolledLease == 0 || v.state != nil:
		return 0, reportDoc{}
	case v.current == nil:
		return 1, reportDoc{Left: &left}
	default:
		return v.current.Round + 1, reportDoc{Left: &left}
	}
}

// show says once what a Join waits for.
func (b *member) show(reason string) {
	if len(b.joins) > 0 && reason != b.shown {
		b.shown = reason
		b.emit(showReason{reason})
	}
}

// apply answers at once if the report is recorded already, or makes no difference. Otherwise member.answer does, once it is recorded.
func (e reportCalled) apply(m *stateMachine) {
	b := &m.member
	if f := e.doc.Failure; f != nil && len(f.Unreachable) > 0 {
		b.confirm(e.round, f.Unreachable)
	}
	switch {
	case b.round != e.round || b.report != nil && b.report.recorded:
		m.emit(answerReport{e.id, nil})
	case b.report == nil:
		b.report = &report{doc: e.doc, callers: []int{e.id}}
	default:
		b.report.callers = append(b.report.callers, e.id)
	}
}

func (leaving) apply(m *stateMachine) { m.member.self.Leaving = true }

// record lets the store know of the report. As long as nothing has come of it that is done again, for a store that has
// lost it.
func (b *member) record() {
	if r := b.report; r != nil && (!r.recorded || b.now.Sub(r.at) >= recheck) {
		b.request(reporting, &recordReport{b.conn.view, b.round, r.doc})
	}
}

// recordReport writes how the node's part of a round has ended, unless it has done that or the job is closed.
type recordReport struct {
	view  *view
	round int
	doc   reportDoc
}

func (r *recordReport) do(ctx context.Context, x *executor) error {
	key := x.keys.report(r.round, x.key)
	return x.when(isMissing(key), isMissing(x.keys.state())).put(key, r.doc, r.view.config.lease).try(ctx)
}

func (r *recordReport) done(m *stateMachine, err error) {
	switch b := &m.member; {
	case isLeaseLost(err): // the store has lost the job
		m.conn.dirty = true
	case err != nil && !isRefusal(err):
		m.onOutage(err)
	case b.report != nil && b.round == r.round:
		b.report.recorded, b.report.at = err == nil, m.now
		b.answer(err)
	}
}

func (b *member) answer(err error) {
	for _, id := range b.report.callers {
		b.emit(answerReport{id, err})
	}
	b.report.callers = nil
}

package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// An action is something that the driver is to do. Actions are plain data, as events are.
type action interface{ perform(d *driver) }

// asked has a request carried out.
type asked struct {
	kind kind
	request
}

// perform pauses before the answer if the request fails.
func (a asked) perform(d *driver) {
	d.others.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
		err := a.do(ctx, &d.executor)
		cancel()
		if err != nil {
			network.Pause(d.ctx, retryInterval)
		}
		d.post(answered{a.kind, a.request, err})
	})
}

// A request is what takes its time: the store is asked, as a rule. The state machine asks for it, an executor carries
// it out, and it comes back to it as an event with what it has found.
type request interface {
	do(ctx context.Context, x *executor) error // notes in the request what it finds
	done(m *stateMachine, err error)           // takes that, or the error with which do has failed
}

// A kind is a kind of request. At most one of a kind is under way.
type kind string

const (
	leasing       kind = "lease"
	reading       kind = "read"
	enrolling     kind = "enrol"
	campaigning   kind = "campaign"
	deciding      kind = "decide"
	publishing    kind = "publish"
	reporting     kind = "report"
	evicting      kind = "evict"
	explaining    kind = "explain"
	reportingLost kind = "report lost"
	retaining     kind = "retain"
	dating        kind = "date"
)

// An executor carries out requests, each in a goroutine of its own. It has no state.
type executor struct {
	writer
	awaitFreeRank func(ctx context.Context, rank int)                                        // returns when nobody has the rank, or ctx ends
	hasEnded      func(ctx context.Context, key, addr string) bool                           // asks once more whether an agent has ended
	explain       func(ctx context.Context) error                                            // Config.Explain
	pause         func(ctx context.Context, d time.Duration)                                 // returns early if ctx ends
	within        func(context.Context, time.Duration) (context.Context, context.CancelFunc) // bounds a part of a request
}

func (e answered) apply(m *stateMachine) { e.done(m, e.err) }

// start starts a task, instead of the one of that name. Without a name it ends by itself. The state machine hears nothing of a task that has
// been stopped.
type start struct {
	name string
	task task
}

func (a start) perform(d *driver) {
	stop{a.name}.perform(d)
	ctx, cancel := context.WithCancel(d.ctx)
	if a.name != "" {
		d.tasks[a.name] = cancel
	}
	d.others.Go(func() {
		a.task.run(ctx, d, func(e event) {
			d.turn(func() {
				if ctx.Err() == nil {
					d.step(e)
				}
			})
		})
		d.turn(cancel) // when the loop has taken all that was posted
	})
}

// stop stops a task.
type stop struct{ name string }

func (a stop) perform(d *driver) {
	if cancel := d.tasks[a.name]; cancel != nil {
		cancel()
		delete(d.tasks, a.name)
	}
}

// failJoin fails a Join, and releases its port.
type failJoin struct {
	id  int
	err error
}

func (a failJoin) perform(d *driver) {
	j := d.joins[a.id]
	delete(d.joins, a.id)
	d.release(j.port)
	j.answer <- joined{err: a.err}
}

// enterRound gives a Join its round. On rank 0 the port stays reserved until the workers have started.
type enterRound struct {
	join  int
	round rendezvous.Round
}

func (a enterRound) perform(d *driver) {
	j := d.joins[a.join]
	delete(d.joins, a.join)
	var round *rendezvous.Round
	if a.round.Self == 0 && j.port != nil {
		round, d.endRound = rendezvous.Begin(a.round, j.port)
	} else {
		d.release(j.port)
		round, d.endRound = rendezvous.Begin(a.round, nil)
	}
	j.answer <- joined{round: round}
}

// reservePort reserves the master port on the node of rank 0.
type reservePort struct {
	join int
	addr string
	port int
}

func (a reservePort) perform(d *driver) {
	e := portReserved{join: a.join}
	var port rendezvous.Port
	if port, e.err = (rendezvous.Master{Addr: a.addr, Port: a.port}).Reserve(d.config.Reserve); e.err == nil {
		e.port = port.Number()
		d.joins[a.join].port = port
	}
	d.next = append(d.next, e)
}

// endRound ends the round that this node is in.
type endRound struct{ why error }

func (a endRound) perform(d *driver) { d.check(d.endRound(a.why)) }

// answerReport answers a Report or Leave.
type answerReport struct {
	id  int
	err error
}

func (a answerReport) perform(d *driver) {
	d.reports[a.id] <- a.err
	delete(d.reports, a.id)
}

// showReason tells people what a Join waits for.
type showReason struct{ reason string }

func (a showReason) perform(d *driver) { d.config.Waiting(a.reason) }

// showNeed tells the one who has started the node how many nodes the job needs.
type showNeed struct{ nodes int }

func (a showNeed) perform(d *driver) { d.config.Scaled(a.nodes) }

// useSecret is by which agents know each other from now on.
type useSecret struct{ secret string }

func (a useSecret) perform(d *driver) {
	if d.detector != nil {
		d.detector.Use([]byte(a.secret))
	}
}

// logLine writes a line to the log.
type logLine struct {
	level slog.Level
	text  string
	args  []any
}

func (a logLine) perform(d *driver) { d.config.Logger.Log(d.ctx, a.level, a.text, a.args...) }

// logDecision writes a decision, and what it follows from, to the log.
type logDecision struct{ rendezvous.Record }

func (a logDecision) perform(d *driver) {
	if d.config.Logger.Enabled(d.ctx, slog.LevelDebug) {
		d.config.Logger.Debug("decision: " + a.String())
	}
}

// leaveJob takes the node out of the job. It is the last action.
type leaveJob struct {
	view     *view
	lease    store.Lease
	round    int // that must do without this node, and gets report; 0: none
	report   reportDoc
	refused  *refusalDoc // nil: the node is not refused
	futile   bool        // nobody waits for it, or the store is away
	unknown  bool        // the node has not enrolled
	lost     bool        // the store has lost the job
	saysLost *reportLost // to the members of the round, which cannot go on without this one; nil: nothing
	ends     *stateDoc   // how the job ends with this node; nil: it may go on
}

// do changes what the store has of the node.
func (a *leaveJob) do(ctx context.Context, x *executor) error {
	x.sayRefused(ctx, a.refused)
	if a.ends != nil { // unless somebody has decided otherwise meanwhile
		if err := x.close(ctx, a.view, a.ends.Outcome, a.ends.At); err != nil {
			return err
		}
	}
	switch {
	case !a.lost:
		return x.leave(ctx, a.view, a.lease, a.round, a.report)
	case a.saysLost != nil:
		return errors.Join(a.saysLost.do(ctx, x), x.revoke(ctx, a.lease))
	default:
		return x.revoke(ctx, a.lease)
	}
}

func (a leaveJob) perform(d *driver) {
	d.leave = &a
	d.cancel()
}

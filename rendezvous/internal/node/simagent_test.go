package node

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A simAgent is one agent of a simWorld, from its start to its end. It does what package agent does with a rendezvous: it joins, runs
// workers, reports how they ended, and joins again, until the job is over.
type simAgent struct {
	world    *simWorld
	name     string
	node     rendezvous.Node
	config   *Config
	machine  *stateMachine
	executor executor

	gone        bool      // the process has ended
	vanished    bool      // with its machine: nothing refuses connections
	cut         bool      // etcd cannot be reached from here
	frozen      time.Time // until then the process is stopped
	woken       int       // the number of the last timer
	leaving     bool
	leaveReason error // why it was told to; nil: for no reason
	rank        int   // that its node asks for, if they do
	left        bool  // Close has been called
	begun       bool

	second   time.Time // in which requests were made
	requests int

	lastID  int
	joins   map[int]bool // that wait
	reports map[int]bool // that wait
	waits   string       // the last reason that was shown

	running *simRound     // whose workers run; nil: none
	entered *simRound     // the round that this agent is in, until endRound
	over    error         // how the last Join, or the job, has ended for this agent; nil: it goes on
	away    time.Duration // for which etcd had answered no read then
	started time.Time

	jobWatch, nodesWatch *simWatch
	leader               *simLink
	peers                map[string]*simLink
	rank0                *callRank0
	deadRank0            bool // rank 0 had ended when this agent gave up calling it
}

// busyLimit is how many requests an agent may make in a second.
const busyLimit = 200

// A simRound is a round as the agents of a job see it.
type simRound struct {
	rendezvous.Round
}

// A simLink is a liveness connection.
type simLink struct {
	from      *simAgent
	to        *simAgent // nil: no agent has that key
	key, addr string
	stopped   bool
	connected bool
	heard     func(at time.Time, err error) // may be nil
}

func (w *simWorld) newAgent(name string, c Config) *simAgent {
	c.RunID, c.Reserve, c.Started = "job", reserve, w.now
	c.Endpoints = []rendezvous.Endpoint{{Host: "etcd", Port: 2379}}
	if err := c.complete(); err != nil {
		panic(err)
	}
	a := &simAgent{world: w, name: name, config: &c, joins: make(map[int]bool), reports: make(map[int]bool), peers: make(map[string]*simLink)}
	a.executor = executor{
		writer:  writer{keys: keysOf(c.Prefix, c.RunID), random: w.bytes},
		explain: func(context.Context) error { return nil },
	}
	a.executor.key = a.executor.newKey()
	a.node = rendezvous.Node{ID: name, Host: name, NodeRank: -1, Nproc: 1 + w.random.IntN(3), Role: "default", StopTimeout: 300 * time.Millisecond}
	if w.chance(20) {
		a.node.StopTimeout = w.between(0, 10*time.Second)
	}
	a.machine = newStateMachine(&c, a.executor.key, a.executor.newToken(), w.now)
	w.agents = append(w.agents, a)
	return a
}

func (w *simWorld) bytes(b []byte) {
	for i := range b {
		b[i] = byte(w.random.Uint32())
	}
}

// start has the agent begin, and join.
func (a *simAgent) start() {
	a.world.say("%s starts", a.name)
	a.begun, a.started = true, a.world.now
	a.step(begun{})
	a.join()
}

func (a *simAgent) join() {
	if a.gone || a.leaving {
		return
	}
	a.lastID++
	a.joins[a.lastID] = true
	port := 0
	if a.config.MasterPort == 0 {
		port = 20000 + a.lastID
	}
	a.step(joinCalled{a.lastID, a.node, port, 10000})
}

// step hands the machine an event; while the process is stopped, that waits.
func (a *simAgent) step(e event) {
	w := a.world
	if a.gone {
		if called, late := e.(reportCalled); late { // the driver answers it
			delete(a.reports, called.id)
		}
		return
	}
	if w.now.Before(a.frozen) {
		w.at(a.frozen, func() { a.step(e) })
		return
	}
	if w.trace != nil {
		if _, tick := e.(ticked); !tick {
			w.say("%s < %s", a.name, describe(e))
		}
	}
	a.perform(a.machine.Step(w.now, e))
}

// post is step for what a task has found. There is no news of a task that does not run any more.
func (a *simAgent) post(runs func() bool, e event) {
	switch w := a.world; {
	case w.now.Before(a.frozen):
		w.at(a.frozen, func() { a.post(runs, e) })
	case runs():
		a.step(e)
	}
}

func (a *simAgent) perform(actions []action) {
	for _, act := range actions {
		if _, logs := act.(logDecision); a.world.trace != nil && !logs {
			a.world.say("%s > %s", a.name, describe(act))
		}
		if a.world.alter != nil {
			act = a.world.alter(a, act)
		}
		if act != nil {
			a.do(act)
		}
	}
	a.woken++
	timer := a.woken
	a.world.at(latest(a.machine.wake(), a.world.now.Add(time.Millisecond)), func() {
		if timer == a.woken {
			a.step(ticked{})
		}
	})
}

func (a *simAgent) do(act action) {
	w := a.world
	switch act := act.(type) {
	case asked:
		if second := w.now.Truncate(time.Second); second != a.second {
			a.second, a.requests = second, 0
		}
		if a.requests++; a.requests > busyLimit {
			w.fail("%s makes more than %d requests in a second; the last one is %s", a.name, busyLimit, describe(act))
		}
		var err error
		w.carryOut(a, string(act.kind), func(ctx context.Context, x *executor) { err = act.do(ctx, x) }, func() {
			pause := time.Duration(0)
			if err != nil {
				pause = retryInterval
			}
			w.after(pause, func() { a.step(answered{act.kind, act.request, err}) })
		})
	case failJoin:
		if !a.joins[act.id] {
			w.fail("%s: Join %d is answered twice", a.name, act.id)
		}
		delete(a.joins, act.id)
		a.end(act.err)
	case enterRound:
		if !a.joins[act.join] {
			w.fail("%s: Join %d is answered twice", a.name, act.join)
		}
		delete(a.joins, act.join)
		a.enter(&simRound{act.round})
	case reservePort:
		w.after(0, func() { a.step(portReserved{join: act.join, port: 20000}) })
	case endRound:
		if a.entered == nil {
			w.fail("%s: a round ends and there is none", a.name)
		}
		a.entered = nil
		if !errors.Is(act.why, rendezvous.ErrNewRound) {
			a.running = nil
			a.end(act.why)
			return
		}
		w.after(w.between(0, a.node.StopTimeout), func() {
			a.running = nil
			a.join()
		})
	case answerReport:
		if !a.reports[act.id] {
			w.fail("%s: Report %d is answered twice", a.name, act.id)
		}
		delete(a.reports, act.id)
	case showReason:
		a.waits = act.reason
	case leaveJob:
		a.left = true
		w.carryOut(a, "leave", func(ctx context.Context, x *executor) {
			if act.lease != 0 {
				_ = act.do(ctx, x) // otherwise its lease runs out
			}
		}, func() { a.exit(false) })
	case start:
		a.stop(act.name)
		a.run(act.task)
	case stop:
		a.stop(act.name)
	}
}

// stop stops a task.
func (a *simAgent) stop(name string) {
	switch peer, is := strings.CutPrefix(name, "peer "); {
	case is:
		a.peers[peer].stop()
		delete(a.peers, peer)
	case name == "leader":
		a.leader.stop()
		a.leader = nil
	case name == "job" && a.jobWatch != nil:
		a.jobWatch.stopped = true
	case name == "nodes" && a.nodesWatch != nil:
		a.nodesWatch.stopped = true
	case name == "rank 0":
		a.rank0 = nil
	}
}

// run runs a task.
func (a *simAgent) run(t task) {
	w, k := a.world, a.executor.keys
	switch act := t.(type) {
	case watchJob:
		a.jobWatch = w.watch(a, store.Below(k.job()), func(events []store.Event) { a.step(jobChanged{events}) })
	case watchNodes:
		a.nodesWatch = w.watch(a, k.leaders(), func([]store.Event) { a.step(nodesChanged{}) })
	case monitorLeader:
		a.leader = &simLink{from: a, to: w.agentOf(act.key), key: act.key, addr: act.addr}
		a.leader.begin()
	case monitorPeer:
		l := &simLink{from: a, to: w.agentOf(act.key), key: act.key, addr: act.addr}
		l.heard = func(at time.Time, err error) {
			a.post(func() bool { return a.peers[act.key] == l }, peerObserved{act.key, at, err})
		}
		a.peers[act.key] = l
		w.after(w.between(0, spreadTime), l.begin)
	case callWorker:
		l := &simLink{from: a}
		a.peers[act.id] = l
		a.callWorker(act, l)
	case callRank0:
		a.rank0 = &act
		a.call(&act, w.now)
	case confirmPeers:
		var e peersConfirmed
		took := w.latency()
		for _, n := range act.named {
			if !w.reaches(a, w.agentOf(n.Addr)) {
				took = dialTimeout
				e.unreached = append(e.unreached, unreachedWorker{peerDoc{Key: n.Addr, Host: w.agentOf(n.Addr).name}, n.Addr})
			}
		}
		w.after(took, func() { a.step(e) })
	}
}

var silence, refusal = simDialError(os.ErrDeadlineExceeded), simDialError(syscall.ECONNREFUSED)

func simDialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// callWorker repeatedly calls another agent's worker, at its key, until that is stopped.
func (a *simAgent) callWorker(t callWorker, l *simLink) {
	w := a.world
	w.after(redialInterval, func() {
		if l.stopped || a.gone {
			return
		}
		var err error
		if !w.reaches(a, w.agentOf(t.addr)) {
			err = silence
		}
		a.post(func() bool { return a.peers[t.id] == l }, peerObserved{t.id, w.now, err})
		a.callWorker(t, l)
	})
}

// call calls the agent of rank 0 until it answers.
func (a *simAgent) call(c *callRank0, begun time.Time) {
	w := a.world
	to := w.agentOf(c.rank0.Key)
	reached := to != nil && !to.gone && w.reaches(a, to)
	took, err := w.latency(), refusal
	if !w.reaches(a, to) {
		took, err = 3*time.Second, silence
	}
	w.after(took, func() {
		lasted := w.now.Sub(begun)
		runs := func() bool { return a.rank0 == c }
		switch {
		case a.rank0 != c || a.gone:
		case reached:
			a.post(runs, rank0Called{callRank0: *c, last: true})
		case lasted >= c.limit:
			a.deadRank0 = to == nil || to.gone
			a.post(runs, rank0Called{callRank0: *c, err: &UnreachableError{Self: a.node, Master: c.rank0.Host, Err: err}, last: true})
		default:
			a.post(runs, rank0Called{*c, err, true, lasted, false})
			w.after(time.Second, func() {
				if a.rank0 == c {
					a.call(c, begun)
				}
			})
		}
	})
}

// refuses reports whether connections to the agent are refused: its process has ended, and its machine has not.
func (a *simAgent) refuses() bool { return a.gone && !a.vanished }

// begin calls the other agent.
func (l *simLink) begin() {
	w := l.from.world
	if l.stopped || l.from.gone {
		return
	}
	w.after(w.latency(), func() {
		switch {
		case l.stopped || l.from.gone:
		case !w.reaches(l.from, l.to):
			l.hear(silence)
			w.after(5*time.Second, l.begin)
		case !l.to.gone && !l.connected:
			l.connected = true
			l.to.step(agentConnected{l.from.executor.key, 1})
			l.hear(nil)
		case l.to.gone:
			l.hear(refusal)
			w.after(5*time.Second, l.begin)
		}
	})
}

func (l *simLink) hear(err error) {
	if l.heard != nil {
		l.heard(l.from.world.now, err)
	}
}

func (l *simLink) stop() {
	if l != nil && !l.stopped {
		l.stopped = true
		l.disconnect()
	}
}

func (l *simLink) disconnect() {
	if l.connected {
		l.connected = false
		l.to.step(agentConnected{l.from.executor.key, -1})
	}
}

// exit ends the process of the agent, and its connections. Those at their other ends find out.
func (a *simAgent) exit(vanishes bool) {
	w := a.world
	if a.gone {
		return
	}
	a.vanished = vanishes
	a.goFrom(a.entered)
	a.gone = true
	a.running, a.entered = nil, nil
	w.say("%s ends", a.name)
	for _, other := range w.agents {
		for _, l := range other.links() {
			switch {
			case !l.connected || other != a && l.to != a || other.gone && other != a:
			case vanishes: // the connection shows nothing for half a minute
				l.connected = false
				if other != a && l.heard != nil {
					w.after(30*time.Second, l.begin)
				}
			case other == a:
				l.disconnect()
				to := l.to
				w.after(w.between(60*time.Millisecond, 310*time.Millisecond), func() { to.step(agentEnded{a.executor.key, "a:1"}) })
			default:
				l.connected = false
				w.after(w.between(60*time.Millisecond, 310*time.Millisecond), func() {
					if !l.stopped {
						other.step(agentEnded{l.key, l.addr})
					}
				})
			}
		}
	}
}

// links are the connections that the agent has begun, in an order that does not change.
func (a *simAgent) links() (links []*simLink) {
	if a.leader != nil {
		links = append(links, a.leader)
	}
	for _, id := range sortedKeys(a.peers) {
		links = append(links, a.peers[id])
	}
	return links
}

func sortedKeys[T any](m map[string]T) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// enter runs workers in a round.
func (a *simAgent) enter(r *simRound) {
	w := a.world
	w.checkRound(a, r)
	a.running, a.entered, a.waits = r, r, ""
	w.workersEnd(a, r)
}

// report tells how the workers of a round ended.
func (a *simAgent) report(r *simRound, f *rendezvous.Failure) {
	if a.gone || a.entered != r {
		return
	}
	a.send(r, reportDoc{Failure: f})
}

// send makes a report.
func (a *simAgent) send(r *simRound, doc reportDoc) {
	a.lastID++
	a.reports[a.lastID] = true
	a.step(reportCalled{a.lastID, r.ID, doc})
}

// end is the end of the agent's part in the job: it leaves.
func (a *simAgent) end(why error) {
	if a.over == nil {
		a.over, a.away = why, a.world.now.Sub(latest(a.started, a.machine.conn.usable))
		a.world.say("%s: %v", a.name, why)
	}
	if !a.leaving {
		a.world.after(a.world.between(0, time.Second), func() { a.leave(nil) })
	}
}

// leave ends the agent's workers, and takes it out of the job. A process that is stopped does neither.
func (a *simAgent) leave(why error) {
	if a.world.now.Before(a.frozen) {
		a.world.at(a.frozen, func() { a.leave(why) })
		return
	}
	if !a.leaving && !a.gone {
		a.goFrom(a.entered)
		a.leaving = true
		a.step(leaveCalled{why})
	}
}

// goFrom ends this agent's workers of a round, unless they have done their work.
func (a *simAgent) goFrom(r *simRound) {
	if w := a.world; r != nil && w.faulty && !w.succeeded[a.executor.key][r.ID] && !a.leaving {
		a.losePeers(r)
	}
}

func (a *simAgent) failure(r *simRound, final bool) *rendezvous.Failure {
	return &rendezvous.Failure{
		Death: death.Death{Host: a.node.Host, Rank: r.Place.FirstRank, ExitCode: 3}, Node: a.node.ID, Final: final,
	}
}

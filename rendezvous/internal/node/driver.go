package node

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/liveness"
)

const (
	callTimeout   = 5 * time.Second        // of one request
	retryInterval = 200 * time.Millisecond // before the next try of a request that has failed
)

// A driver runs a state machine: one goroutine and one select, which hands it events and carries out its actions. What takes time runs in
// other goroutines, which post what has come of it.
type driver struct {
	config   *Config
	executor executor
	ctx      context.Context // ends everything that the driver has started
	cancel   context.CancelFunc
	others   sync.WaitGroup
	turns    chan func()   // for the loop to call
	done     chan struct{} // the loop has ended

	// The rest is the loop's own, until it has ended.
	machine  *stateMachine
	joins    map[int]*joinCall
	reports  map[int]chan<- error
	lastID   int
	tasks    map[string]context.CancelFunc
	detector *liveness.Detector    // nil: no Join has waited yet
	endRound func(why error) error // of the round that this node is in
	leave    *leaveJob             // nil: the node has not left
	next     []event               // what has come of the actions that are being carried out
}

// A joinCall is a Join of the API. It has a port and a channel, which no event has.
type joinCall struct {
	self   rendezvous.Node
	port   rendezvous.Port // nil: it is reserved when this node has got rank 0
	id     int
	answer chan joined // has room for the one answer
}

type joined struct {
	round *rendezvous.Round
	err   error
}

func startDriver(c *Config) *driver {
	d := &driver{
		config: c, turns: make(chan func()), done: make(chan struct{}),
		joins: make(map[int]*joinCall), reports: make(map[int]chan<- error), tasks: make(map[string]context.CancelFunc),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	w := writer{store: c.Store, keys: keysOf(c.Prefix, c.RunID)}
	w.key = w.newKey()
	d.executor = executor{
		writer: w, explain: c.Explain, within: context.WithTimeout,
		pause:         func(ctx context.Context, d time.Duration) { network.Pause(ctx, d) },
		awaitFreeRank: func(ctx context.Context, rank int) { awaitFreeRank(ctx, c.Store, w.keys.rank(rank)) },
		hasEnded:      func(ctx context.Context, key, addr string) bool { return d.detector.HasEnded(ctx, key, addr) },
	}
	d.machine = newStateMachine(c, w.key, w.newToken(), time.Now())
	go d.run()
	return d
}

// turn has the loop call f. It reports whether the loop does.
func (d *driver) turn(f func()) bool {
	select {
	case d.turns <- f:
		return true
	case <-d.done:
		return false
	}
}

// post hands the state machine an event. It reports whether that takes it.
func (d *driver) post(e event) bool { return d.turn(func() { d.step(e) }) }

func (d *driver) run() {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	d.step(begun{})
	for d.ctx.Err() == nil {
		timer.Reset(time.Until(d.machine.wake()))
		select {
		case <-d.ctx.Done():
		case f := <-d.turns:
			f()
		case <-timer.C:
			d.step(ticked{})
		}
	}
	if d.leave == nil { // in a test, which has killed it
		d.step(leaveCalled{})
		d.leave.round = 0
	}
}

// step hands the state machine an event, and what has come at once of its actions.
func (d *driver) step(e event) {
	for d.next = []event{e}; len(d.next) > 0; {
		e, d.next = d.next[0], d.next[1:]
		for _, a := range d.machine.Step(time.Now(), e) {
			a.perform(d)
		}
	}
}

// join begins a Join.
func (d *driver) join(j *joinCall) {
	d.lastID++
	j.id = d.lastID
	d.joins[j.id] = j
	e := joinCalled{id: j.id, self: j.self}
	if j.port != nil {
		e.port = j.port.Number()
	}
	if d.machine.closed == nil {
		var err error
		if e.agentPort, err = d.listen(j.self.Reach()); err != nil {
			failJoin{j.id, err}.perform(d)
			return
		}
	}
	d.step(e)
}

// report begins a Report or Leave.
func (d *driver) report(round int, doc reportDoc, answer chan<- error) {
	d.lastID++
	d.reports[d.lastID] = answer
	d.step(reportCalled{d.lastID, round, doc})
}

// listen lets the other agents call this one.
func (d *driver) listen(host string) (port int, err error) {
	if d.detector == nil {
		d.detector, err = liveness.Listen(liveness.Config{
			Key: d.executor.key, Host: host, Secret: []byte(d.machine.member.secret),
			Ended:   func(key, addr string) { d.post(agentEnded{key, addr}) },
			Changed: func(key string, more int) { d.post(agentConnected{key, more}) },
			Dial:    d.config.dial,
			Control: d.config.Control,
			Log:     d.config.Logger.With("for", "liveness").Info,
		})
	}
	if err != nil {
		return 0, err
	}
	return d.detector.Port(), nil
}

// release closes a port that nobody needs; nil: none.
func (d *driver) release(port rendezvous.Port) {
	if port != nil {
		d.check(port.Close())
	}
}

// check logs an error that no caller gets.
func (d *driver) check(err error) {
	if err != nil {
		d.config.Logger.Warn("master port", "error", err)
	}
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// close ends the loop and takes the node out of the job.
func (d *driver) close(ctx context.Context, why error) error {
	d.post(leaveCalled{why})
	<-d.done
	d.others.Wait()
	if d.detector != nil {
		defer d.detector.Close() // after the store has been told: otherwise the others would take this agent for a killed one
	}
	if d.leave.lease == 0 {
		return nil
	}
	limit := callTimeout
	if d.leave.futile {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := d.leave.do(ctx, &d.executor)
	if err == nil || d.leave.futile || d.leave.unknown && isRefusal(err) {
		return nil
	}
	return fmt.Errorf("this node is known for up to %v more: %w", d.config.Lease, err)
}

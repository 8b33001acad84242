package etcd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/liveness"
)

// A driver runs a machine: one goroutine and one select, which hands it events and carries out its actions. What takes time runs in
// other goroutines, which post what has come of it.
type driver struct {
	config   *Config
	executor executor
	ctx      context.Context // ends everything that the driver has started
	cancel   context.CancelFunc
	others   sync.WaitGroup
	events   chan event
	calls    chan call
	done     chan struct{} // the loop has ended

	// The rest is the loop's own, until it has ended.
	machine  *machine
	joins    map[int]*joinCall
	reports  map[int]chan<- error
	lastID   int
	tasks    map[string]context.CancelFunc
	detector *liveness.Detector    // nil: no Join has waited yet
	endRound func(why error) error // of the round that this node is in
	leave    *leaveJob             // nil: the node has not left
	next     []event               // what has come of the actions that are being carried out
}

// A call is one of the API. It has answer channels and ports, which no event has.
type call interface{ take(d *driver) }

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

type cancelCall struct {
	join *joinCall
	err  error
}

type reportCall struct {
	round  int
	doc    reportDoc
	answer chan error // has room for the one answer
}

func startDriver(c *Config) *driver {
	d := &driver{
		config: c, events: make(chan event), calls: make(chan call), done: make(chan struct{}),
		joins: make(map[int]*joinCall), reports: make(map[int]chan<- error), tasks: make(map[string]context.CancelFunc),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	w := writer{client: c.Client, keys: keysOf(c.Prefix, c.RunID)}
	w.key = w.newKey()
	d.executor = executor{
		writer: w, explain: c.Explain, pause: pause, within: context.WithTimeout,
		awaitFreeRank: func(ctx context.Context, rank int) { awaitFreeRank(ctx, c.Client, w.keys, rank) },
		fault: func(point string) bool {
			dead := c.fault(point)
			if dead {
				d.cancel()
			}
			return dead
		},
		hasEnded: func(ctx context.Context, key, addr string) bool { return d.detector.HasEnded(ctx, key, addr) },
	}
	d.machine = newMachine(c, w.key, w.newToken(), c.Client.Endpoints(), time.Now())
	go d.run()
	return d
}

// post hands the machine an event. It reports whether the loop takes it.
func (d *driver) post(e event) bool {
	select {
	case d.events <- e:
		return true
	case <-d.done:
		return false
	}
}

// call makes a call. It reports whether the loop takes it.
func (d *driver) call(c call) bool {
	select {
	case d.calls <- c:
		return true
	case <-d.done:
		return false
	}
}

func (d *driver) run() {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	d.perform(d.machine.begin())
	for d.ctx.Err() == nil {
		timer.Reset(time.Until(d.machine.wake()))
		select {
		case <-d.ctx.Done():
		case e := <-d.events:
			d.step(e)
		case c := <-d.calls:
			c.take(d)
		case <-timer.C:
			d.step(ticked{})
		}
	}
	if d.leave == nil { // Config.fault has killed it
		d.step(leaveCalled{})
		d.leave.round = 0
	}
}

// step hands the machine an event, and what has come at once of its actions.
func (d *driver) step(e event) {
	for d.next = []event{e}; len(d.next) > 0; {
		e, d.next = d.next[0], d.next[1:]
		d.perform(d.machine.Step(time.Now(), e))
	}
}

func (j *joinCall) take(d *driver) {
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
			d.failJoin(failJoin{j.id, err})
			return
		}
	}
	d.step(e)
}

func (c cancelCall) take(d *driver) { d.step(joinCancelled{c.join.id, c.err}) }

func (c reportCall) take(d *driver) {
	d.lastID++
	d.reports[d.lastID] = c.answer
	d.step(reportCalled{d.lastID, c.round, c.doc})
}

func (e leaveCalled) take(d *driver) { d.step(e) }

// listen lets the other agents call this one.
func (d *driver) listen(host string) (port int, err error) {
	if d.detector == nil {
		d.detector, err = liveness.Listen(liveness.Config{
			Key: d.executor.key, Host: host, Secret: []byte(d.machine.member.secret),
			Ended:   func(key, addr string) { d.post(agentEnded{key, addr}) },
			Changed: func(key string, more int) { d.post(agentConnected{key, more}) },
			Dial:    d.config.dial,
			Log:     d.config.Log.With("for", "liveness").Info,
		})
	}
	if err != nil {
		return 0, err
	}
	return d.detector.Port(), nil
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// perform carries out actions, in order.
func (d *driver) perform(actions []action) {
	for _, a := range actions {
		switch a := a.(type) {
		case request:
			d.request(a)
		case failJoin:
			d.failJoin(a)
		case enterRound:
			d.enterRound(a)
		case reservePort:
			d.reservePort(a)
		case endRound:
			d.check(d.endRound(a.why))
		case answerReport:
			d.reports[a.id] <- a.err
			delete(d.reports, a.id)
		case showReason:
			d.config.Waiting(a.reason)
		case leaveJob:
			d.leave = &a
			d.cancel()
		case logLine:
			d.config.Log.Log(d.ctx, a.level, a.text, a.args...)
		case useSecret:
			if d.detector != nil {
				d.detector.Use([]byte(a.secret))
			}
		default:
			d.performTask(a)
		}
	}
}

// performTask starts or stops what goes on beside the loop.
func (d *driver) performTask(a action) {
	k := d.executor.keys
	switch a := a.(type) {
	case watchJob:
		d.start("watch job", func(ctx context.Context) {
			watch(ctx, d.config.Client, k.job(), clientv3.GetPrefixRangeEnd(k.job()), func(events []*clientv3.Event) { d.post(jobChanged{events}) })
		})
	case watchNodes:
		d.stop("watch nodes")
		if a.on {
			d.start("watch nodes", func(ctx context.Context) {
				watch(ctx, d.config.Client, k.nodes(), clientv3.GetPrefixRangeEnd(k.rounds()), func([]*clientv3.Event) { d.post(nodesChanged{}) })
			})
		}
	case monitorLeader:
		d.stop("leader")
		if a.key != "" {
			d.start("leader", func(ctx context.Context) {
				if d.detector.Monitor(ctx, a.key, a.addr, nil) {
					d.post(agentEnded(a))
				}
			})
		}
	case monitorPeer:
		d.start("peer "+a.id, func(ctx context.Context) { d.monitorPeer(ctx, a) })
	case callWorker:
		d.start("peer "+a.id, func(ctx context.Context) { d.callWorker(ctx, a) })
	case stopPeer:
		d.stop("peer " + a.id)
	case callRank0:
		d.start("rank 0", func(ctx context.Context) { d.callRank0(ctx, a) })
	case hangUp:
		d.stop("rank 0")
	case confirmPeers:
		d.others.Go(func() { d.confirmPeers(d.ctx, a) })
	case probePeers:
		d.others.Go(func() { d.probePeers(d.ctx, a) })
	}
}

// start starts a task instead of the one of that name.
func (d *driver) start(name string, task func(context.Context)) {
	d.stop(name)
	ctx, cancel := context.WithCancel(d.ctx)
	d.tasks[name] = cancel
	d.others.Go(func() { task(ctx) })
}

func (d *driver) stop(name string) {
	if cancel := d.tasks[name]; cancel != nil {
		cancel()
		delete(d.tasks, name)
	}
}

// request carries out a request. If it fails, there is a pause before the answer.
func (d *driver) request(r request) {
	d.others.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
		a := r.do(ctx, &d.executor)
		cancel()
		if a.failure() != nil {
			pause(d.ctx, retryInterval)
		}
		d.post(a)
	})
}

func (d *driver) failJoin(a failJoin) {
	j := d.joins[a.id]
	delete(d.joins, a.id)
	d.release(j.port)
	j.answer <- joined{err: a.err}
}

func (d *driver) enterRound(a enterRound) {
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

func (d *driver) reservePort(a reservePort) {
	e := portReserved{join: a.join}
	var port rendezvous.Port
	if port, e.err = (rendezvous.Master{Addr: a.addr, Port: a.port}).Reserve(d.config.Reserve); e.err == nil {
		e.port = port.Number()
		d.joins[a.join].port = port
	}
	d.next = append(d.next, e)
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
		d.config.Log.Warn("master port", "error", err)
	}
}

// close ends the loop and takes the node out of the job.
func (d *driver) close(ctx context.Context, why error) error {
	d.call(leaveCalled{why})
	<-d.done
	d.others.Wait()
	if d.detector != nil {
		defer d.detector.Close() // after etcd has been told: otherwise the others would take this agent for a killed one
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
	err := d.executor.leave(ctx, d.leave.view, d.leave.lease, d.leave.round, why)
	if err == nil || d.leave.futile || d.leave.unknown && isRefusal(err) {
		return nil
	}
	return fmt.Errorf("etcd: this node is known for up to %v more: %w", d.config.Lease, err)
}

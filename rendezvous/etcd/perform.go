package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

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

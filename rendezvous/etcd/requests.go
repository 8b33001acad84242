package etcd

import (
	"context"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/gorun/gorun/rendezvous"
)

// An executor carries out requests, each in a goroutine of its own. It has no state.
type executor struct {
	writer
	awaitFreeRank func(ctx context.Context, rank int)                                        // returns when nobody has the rank, or ctx ends
	hasEnded      func(ctx context.Context, key, addr string) bool                           // asks once more whether an agent has ended
	explain       func(ctx context.Context) error                                            // Config.Explain
	fault         func(point string) bool                                                    // Config.fault; what it kills does nothing more
	pause         func(ctx context.Context, d time.Duration)                                 // returns early if ctx ends
	within        func(context.Context, time.Duration) (context.Context, context.CancelFunc) // bounds a part of a request
}

// answered is what all answers have.
type answered struct {
	of  kind
	err error
}

func (a answered) kind() kind     { return a.of }
func (a answered) failure() error { return a.err }

type (
	// renewLease renews the lease, or asks for one if there is none.
	renewLease struct {
		lease clientv3.LeaseID
		ttl   time.Duration
	}
	leaseAnswered struct {
		answered
		lease clientv3.LeaseID
		ttl   time.Duration
		lost  bool // etcd does not know the lease any more
	}
)

func (renewLease) action()    {}
func (renewLease) kind() kind { return leasing }

func (r renewLease) do(ctx context.Context, x *executor) answer {
	ctx, cancel := x.within(ctx, min(callTimeout, max(r.ttl*3/4, time.Second)))
	defer cancel()
	a := leaseAnswered{answered: answered{of: leasing}, lease: r.lease, ttl: r.ttl}
	if r.lease != 0 {
		_, a.err = x.client.KeepAliveOnce(ctx, r.lease)
		if isLeaseLost(a.err) {
			a.lease, a.lost, a.err = 0, true, nil
		}
		return a
	}
	granted, err := x.client.Grant(ctx, int64(r.ttl.Seconds()+0.5))
	if a.err = err; err == nil {
		a.lease, a.ttl = granted.ID, time.Duration(granted.TTL)*time.Second
	}
	return a
}

type (
	// readJob reads what has changed since the view before. A leader reads all nodes and reports.
	readJob struct {
		whole  bool
		before *view
		anew   bool // also what has not changed: an etcd that has lost some of its history may have counted on since
	}
	readAnswered struct {
		answered
		asked readJob
		now   *view
		back  bool // etcd has lost some of its history
	}
)

func (readJob) action()    {}
func (readJob) kind() kind { return reading }

func (r readJob) do(ctx context.Context, x *executor) answer {
	a := readAnswered{answered: answered{of: reading}, asked: r}
	a.now, a.back, a.err = x.readNewer(ctx, r.whole, r.before, r.anew)
	return a
}

type (
	// enrolNode lets etcd know of the node, as a newcomer under this lease or as it has changed since rev.
	enrolNode struct {
		enrolment
		anew  bool
		known jobConfig // the settings, as far as they are known
		led   bool      // there is a leader, as far as is known
		waits bool      // another node has the rank
		rev   int64
	}
	nodeEnrolled struct {
		answered
		asked enrolNode
		in    enrolled
	}
)

func (enrolNode) action()    {}
func (enrolNode) kind() kind { return enrolling }

func (r enrolNode) do(ctx context.Context, x *executor) answer {
	a := nodeEnrolled{answered: answered{of: enrolling}, asked: r}
	if !r.anew {
		a.in.rev, a.err = x.register(ctx, r.lease, r.self, r.known, r.rev)
		return a
	}
	if r.waits {
		waiting, cancel := x.within(ctx, rankInterval)
		x.awaitFreeRank(waiting, r.self.Node.NodeRank)
		cancel()
	}
	r.mine.Job = x.newKey()
	a.in, a.err = x.enrol(ctx, r.enrolment, r.known, r.led)
	if a.err == nil && a.in.instead != "" {
		_ = x.evict(ctx, a.in.instead) // so that it finds out; otherwise it is in nobody's way
	}
	return a
}

type (
	// campaign makes this node the leader if there is none.
	campaign struct {
		lease clientv3.LeaseID
		self  leaderDoc
	}
	// writeDecision writes what rendezvous.Form has decided.
	writeDecision struct {
		view     *view
		decision rendezvous.Decision
		at       time.Time
	}
	// requestProbe asks the members of the round to probe each other.
	requestProbe struct{ view *view }
	// stepDown makes room for another leader.
	stepDown struct{ view *view }
	// leaderWrote answers all of these.
	leaderWrote struct {
		answered
		steppedDown bool
	}
)

func (campaign) action()         {}
func (campaign) kind() kind      { return campaigning }
func (writeDecision) action()    {}
func (writeDecision) kind() kind { return deciding }
func (requestProbe) action()     {}
func (requestProbe) kind() kind  { return deciding }
func (stepDown) action()         {}
func (stepDown) kind() kind      { return deciding }

func (r campaign) do(ctx context.Context, x *executor) answer {
	err := x.commit(ctx, "campaign", func() error { return x.campaign(ctx, r.lease, r.self) })
	return leaderWrote{answered: answered{campaigning, err}}
}

func (r writeDecision) do(ctx context.Context, x *executor) answer {
	var err error
	switch d := r.decision; {
	case d.Close != nil:
		err = x.commit(ctx, "close", func() error { return x.close(ctx, r.view, *d.Close, r.at) })
	case d.Over != nil:
		err = x.commit(ctx, "end", func() error { return x.end(ctx, r.view, *d.Over) })
	default:
		err = x.commit(ctx, "form", func() error { return x.form(ctx, r.view, *d.Form, x.newToken()) })
	}
	return leaderWrote{answered: answered{deciding, err}}
}

func (r requestProbe) do(ctx context.Context, x *executor) answer {
	return leaderWrote{answered: answered{deciding, x.probe(ctx, r.view)}}
}

func (r stepDown) do(ctx context.Context, x *executor) answer {
	err := x.stepDown(ctx, r.view)
	return leaderWrote{answered{deciding, err}, err == nil}
}

// commit makes a write of the leader's.
func (x *executor) commit(ctx context.Context, point string, write func() error) error {
	if x.fault("before " + point) {
		return context.Cause(ctx)
	}
	err := write()
	x.fault("after " + point)
	return err
}

type (
	// publishStatus lets those who wait know what for.
	publishStatus struct {
		view         *view
		wait, reason string
	}
	statusPublished struct {
		answered
		wait string
	}
)

func (publishStatus) action()    {}
func (publishStatus) kind() kind { return publishing }

func (r publishStatus) do(ctx context.Context, x *executor) answer {
	err := x.putStatus(ctx, r.view, r.reason)
	x.pause(ctx, publishInterval*time.Duration(1+len(r.view.nodes)/1000))
	return statusPublished{answered{publishing, err}, r.wait}
}

type (
	// recordReport lets etcd know how this node's part of the round has ended.
	recordReport struct {
		view  *view
		round int
		doc   reportDoc
	}
	reportRecorded struct {
		answered
		round int
	}
)

func (recordReport) action()    {}
func (recordReport) kind() kind { return reporting }

func (r recordReport) do(ctx context.Context, x *executor) answer {
	return reportRecorded{answered{reporting, x.report(ctx, r.view, r.round, r.doc)}, r.round}
}

type (
	// evictAgents has etcd forget agents that have ended.
	evictAgents   struct{ ended map[string]string }
	agentsEvicted struct {
		answered
		asked evictAgents
		done  []string
	}
)

func (evictAgents) action()    {}
func (evictAgents) kind() kind { return evicting }

func (r evictAgents) do(ctx context.Context, x *executor) answer {
	a := agentsEvicted{answered: answered{of: evicting}, asked: r}
	for _, key := range slices.Sorted(maps.Keys(r.ended)) {
		if x.hasEnded(ctx, key, r.ended[key]) {
			limited, cancel := x.within(ctx, evictTimeout)
			a.err = x.evict(limited, key)
			cancel()
			if a.err != nil {
				return a
			}
		}
		a.done = append(a.done, key)
	}
	return a
}

type (
	// explainOutage finds out what is behind an error.
	explainOutage   struct{ err error }
	outageExplained struct {
		answered
		why error
	}
)

func (explainOutage) action()    {}
func (explainOutage) kind() kind { return explaining }

func (r explainOutage) do(ctx context.Context, x *executor) answer {
	why := x.explain(ctx)
	if why == nil {
		why = r.err
	}
	return outageExplained{answered{of: explaining}, why}
}

type (
	// restoreJob puts back what etcd has lost.
	restoreJob struct {
		enrolment
		now, past *view
	}
	jobRestored struct{ answered }
)

func (restoreJob) action()    {}
func (restoreJob) kind() kind { return restoring }

func (r restoreJob) do(ctx context.Context, x *executor) answer {
	return jobRestored{answered{restoring, x.restore(ctx, r.enrolment, r.now, r.past)}}
}

type (
	// retainJob renews the lease of what is written of the job.
	retainJob struct {
		view  *view
		lasts bool // the job has lasted
	}
	jobRetained struct{ answered }
)

func (retainJob) action()    {}
func (retainJob) kind() kind { return retaining }

func (r retainJob) do(ctx context.Context, x *executor) answer {
	_, err := x.client.KeepAliveOnce(ctx, r.view.config.lease)
	if err == nil && r.lasts {
		err = x.establish(ctx, r.view)
	}
	return jobRetained{answered{retaining, err}}
}

type (
	// dateEnd finds out how long ago the job has ended.
	dateEnd  struct{ view *view }
	endDated struct {
		answered
		view *view
		ago  time.Duration
	}
)

func (dateEnd) action()    {}
func (dateEnd) kind() kind { return dating }

func (r dateEnd) do(ctx context.Context, x *executor) answer {
	ago, err := x.age(ctx, r.view.stateLease)
	return endDated{answered{dating, err}, r.view, ago}
}

package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Random returns a scenario with random faults: a job for which two nodes are enough, over three members of etcd. Each node and each
// member has its own network. For the given time, one fault follows another, and sometimes two come at once, as determined by seed.
// After each fault, all nodes must compute together again.
func Random(seed uint64, length time.Duration) *Scenario {
	return &Scenario{
		Name:   "random",
		About:  fmt.Sprintf("random faults for %v, one after the other and two at once (--seed=%d)", length, seed),
		length: length + recoveryLimit, // the last fault may take as long
		job: job{
			etcd: 3, network: true, enough: 2, ttl: randomLease, lastCall: randomCall,
			flags: []string{"--max-restarts=1048576", "--max-restart-backoff=0"},
		},
		restarts: -1,
		steps:    func(nodes int) []step { return []step{randomFaults(seed, length, nodes)} },
	}
}

const (
	randomLease = 4 * time.Second
	// randomCall is longer than it takes to lose a node. Otherwise a round might form without a node that is about to come back.
	randomCall = randomLease + time.Second
	// silenceTime is how long a connection may be silent before it counts as lost.
	silenceTime = 30 * time.Second
	// recoveryLimit is how long recovery may take: a host whose nodes do not stay is kept out for up to ten minutes.
	recoveryLimit = 11 * time.Minute
)

// randomFaults injects one fault after the other. After each it logs how long it took until all nodes computed together again.
func randomFaults(seed uint64, length time.Duration, nodes int) step {
	return step{fmt.Sprintf("random faults for %v", length), func(ctx context.Context, d *drill) error {
		r := rand.New(rand.NewPCG(seed, 0))
		var slowest time.Duration
		restarts, begun, used := 0, time.Now(), make(usages)
		used.sample(d)
		for n := 1; n == 1 || time.Since(begun) < length; n++ {
			list := chooseFaults(r, nodes, d.job.etcd)
			pauses := choosePauses(r, len(list)+1)
			what := describeFaults(list)
			d.fault.what = fmt.Sprintf("%d random faults, seed %d", n, seed)
			for _, f := range list {
				restarts += f.restarts
			}
			took, err := d.injectAll(ctx, list, pauses, upTo(0, nodes))
			if err == nil {
				if used := d.restarts(); used > restarts {
					err = fmt.Errorf("restarts used: %d, where faults have cost %d", used, restarts)
				}
			}
			if err != nil {
				return fmt.Errorf("fault %d after %.0f s: %s: %w", n, time.Since(begun).Seconds(), what, err)
			}
			used.sample(d)
			if err := used.check(); err != nil {
				return fmt.Errorf("fault %d after %.0f s: %s: %w", n, time.Since(begun).Seconds(), what, err)
			}
			d.options.log("random, %s: %d: %s: computing together again after %.1f s", d.policy, n, what, took.Seconds())
			if took > slowest {
				slowest, d.fault.at, d.fault.recovered = took, time.Now().Add(-took), time.Now()
			}
			if err := d.pass(ctx, time.Duration(r.Int64N(int64(2*time.Second)))); err != nil {
				return err
			}
		}
		for _, line := range used.report() {
			d.options.log("random, %s: %s", d.policy, line)
		}
		return nil
	}}
}

// injectAll begins the faults, one after the other, and ends them in the same order. It returns how long it took after the end of the
// last one until all nodes computed together.
func (d *drill) injectAll(ctx context.Context, list []randomFault, pauses []time.Duration, all []int) (took time.Duration, err error) {
	for i, f := range list {
		if err := f.begin.do(ctx, d); err != nil {
			return 0, err
		}
		if err := d.pass(ctx, max(pauses[i], f.lasts)); err != nil {
			return 0, err
		}
	}
	for _, f := range list {
		for _, s := range f.end {
			if err := s.do(ctx, d); err != nil {
				return 0, err
			}
		}
	}
	over := time.Now()
	if err := d.pass(ctx, pauses[len(list)]); err != nil { // the job may not have reacted to the faults yet
		return 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, recoveryLimit, fmt.Errorf("not recovered within %v", recoveryLimit))
	defer cancel()
	err = d.await(limited, func() bool { return d.together(all) })
	if err == nil {
		err = d.computeOn(limited)
	}
	return time.Since(over), err
}

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
		length: length,
		job: job{
			etcd: 3, network: true, enough: 2, ttl: randomLease, lastCall: randomCall,
			budget: 1 << 20, eager: true, restarts: -1,
		},
		steps: func(nodes int) []step { return []step{randomFaults(seed, length, nodes)} },
	}
}

const (
	randomLease = 4 * time.Second
	// randomCall is longer than it takes to lose a node. Otherwise a round might form without a node that is about to come back.
	randomCall = randomLease + time.Second
	// silenceTime is how long a connection may be silent before it counts as lost.
	silenceTime = 30 * time.Second
	// recoveryLimit is how long recovery may take: a host that was lost several times is kept out for a while.
	recoveryLimit = 3 * time.Minute
)

// randomFaults injects one fault after the other. After each it logs how long it took until all nodes computed together again.
func randomFaults(seed uint64, length time.Duration, nodes int) step {
	return step{fmt.Sprintf("random faults for %v", length), func(ctx context.Context, s *testbed) error {
		r := rand.New(rand.NewPCG(seed, 0))
		var slowest time.Duration
		restarts, begun, used := 0, time.Now(), make(usages)
		used.sample(s)
		for n := 1; n == 1 || time.Since(begun) < length; n++ {
			list := chooseFaults(r, nodes, s.job.etcd)
			pauses := choosePauses(r, len(list)+1)
			what := describeFaults(list)
			s.fault = fmt.Sprintf("%d random faults, seed %d", n, seed)
			for _, f := range list {
				restarts += f.costs
			}
			took, err := s.inject(ctx, list, pauses, upTo(0, nodes))
			if err == nil {
				if used := s.world.restarts(); used > restarts {
					err = fmt.Errorf("restarts used: %d, where faults have cost %d", used, restarts)
				}
			}
			if err != nil {
				return fmt.Errorf("fault %d after %.0f s: %s: %w", n, time.Since(begun).Seconds(), what, err)
			}
			used.sample(s)
			if err := used.check(); err != nil {
				return fmt.Errorf("fault %d after %.0f s: %s: %w", n, time.Since(begun).Seconds(), what, err)
			}
			s.options.log("random, %s: %d: %s: computing together again after %.1f s", s.job.policy, n, what, took.Seconds())
			if took > slowest {
				slowest, s.world.fault, s.recovered = took, time.Now().Add(-took), time.Now()
			}
			if err := s.pass(ctx, time.Duration(r.Int64N(int64(2*time.Second)))); err != nil {
				return err
			}
			s.world.newRound = time.Time{} // of the slowest it is not known
		}
		for _, line := range used.report() {
			s.options.log("random, %s: %s", s.job.policy, line)
		}
		return nil
	}}
}

// inject begins the faults, one after the other, and ends them in the same order. It returns how long it took after the end of the
// last one until all nodes computed together.
func (s *testbed) inject(ctx context.Context, list []randomFault, pauses []time.Duration, all []int) (took time.Duration, err error) {
	for i, f := range list {
		if err := f.begin(ctx, s); err != nil {
			return 0, err
		}
		if err := s.pass(ctx, max(pauses[i], f.lasts)); err != nil {
			return 0, err
		}
	}
	for _, f := range list {
		if f.end == nil {
			continue
		}
		if err := f.end(ctx, s); err != nil {
			return 0, err
		}
	}
	over := time.Now()
	if err := s.pass(ctx, pauses[len(list)]); err != nil { // what follows from it may not have begun
		return 0, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, recoveryLimit, fmt.Errorf("not recovered within %v", recoveryLimit))
	defer cancel()
	err = s.await(limited, func(w *world) bool { return w.together(all) })
	if err == nil {
		err = s.computeOn(limited)
	}
	return time.Since(over), err
}

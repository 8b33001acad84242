package drill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// After how long a silent node is lost: leaseTime where a drill waits for this, and steadyLease where it must not happen
// although agents may need more than a second to find an etcd that is back. Much shorter leases would expire on a busy
// machine.
const (
	leaseTime   = 2 * time.Second
	steadyLease = 3 * time.Second
)

// hangTime is after how long a worker that makes no progress hangs.
const hangTime = 2 * time.Second

// A step is one thing that a scenario does or waits for.
type step struct {
	what string // for people
	do   func(context.Context, *testbed) error
}

// together waits until the workers of exactly these nodes compute in one round.
func together(nodes []int) step {
	return step{"computing together: " + nodesNamed(nodes), func(ctx context.Context, s *testbed) error {
		if err := s.await(ctx, func(w *world) bool { return w.together(nodes) }); err != nil {
			return err
		}
		return s.world.checkRound()
	}}
}

// again is together after the fault. It ends the measured time.
func again(nodes []int) step {
	return step{"computing again: " + nodesNamed(nodes), func(ctx context.Context, s *testbed) error {
		if err := s.await(ctx, func(w *world) bool { return w.newest() > w.before && w.together(nodes) }); err != nil {
			return err
		}
		s.recovered = s.changed
		if err := s.world.checkRound(); err != nil || s.job.policy == Restart || s.world.program {
			return err
		}
		return s.world.checkSurvivors()
	}}
}

// computeOn waits until all workers of the newest round have computed once more.
func computeOn() step {
	return step{"they compute on", func(ctx context.Context, s *testbed) error { return s.computeOn(ctx) }}
}

func (s *testbed) computeOn(ctx context.Context) error {
	nodes, then := s.world.nodesOf(s.world.newest()), make(map[*worker]int)
	for _, k := range s.world.workers {
		then[k] = k.computations
	}
	return s.await(ctx, func(w *world) bool {
		return w.together(nodes) && !slices.ContainsFunc(w.in(w.newest()), func(k *worker) bool { return k.computations <= then[k] })
	})
}

// oneRound checks that there was only one new round: no other node was lost, not even for a moment.
func oneRound() step {
	return step{"there was exactly one new round", func(_ context.Context, s *testbed) error {
		if n := s.world.newest() - s.world.before; n != 1 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	}}
}

// hosting waits until a node hosts the rendezvous.
func hosting(node int) step {
	return step{fmt.Sprintf("node %d hosts the rendezvous", node), func(ctx context.Context, s *testbed) error {
		return s.await(ctx, func(*world) bool { return s.agents[node].announced })
	}}
}

func cut(node int) step {
	return step{fmt.Sprintf("node %d is cut off", node), func(_ context.Context, s *testbed) error { return s.cut(node, false) }}
}

func heal(node int) step {
	return step{fmt.Sprintf("node %d is back", node), func(_ context.Context, s *testbed) error { return s.heal(node) }}
}

func start(nodes []int) step {
	return step{"starting " + nodesNamed(nodes), func(_ context.Context, s *testbed) error {
		for _, n := range nodes {
			if err := s.startAgent(n); err != nil {
				return err
			}
		}
		return nil
	}}
}

// startEtcds starts the members of etcd, and waits until they serve.
func startEtcds(members int) step {
	return step{fmt.Sprintf("starting etcd, members: %d", members), func(ctx context.Context, s *testbed) error {
		for i := range members {
			if err := s.startEtcd(i); err != nil {
				return err
			}
		}
		return s.await(ctx, func(*world) bool {
			for _, p := range s.etcds {
				if !p.announced {
					return false
				}
			}
			return true
		})
	}}
}

// finish lets the job end successfully, and then ends etcd. The user's own program ends by itself.
func finish() step {
	return step{"the job ends, every agent with exit code 0", func(ctx context.Context, s *testbed) error {
		s.finished = time.Now()
		s.world.over = true // what happens from now on has nothing to do with the fault
		agents := running(s.agents)
		for _, p := range agents {
			p.mayEnd = true
		}
		for _, k := range s.world.live(anywhere) { // the user's own program does not read it
			_ = k.say(finishLine) // it may have ended, since another was to finish
		}
		if err := s.awaitEnd(ctx, agents...); err != nil {
			return err
		}
		etcds := running(s.etcds)
		for _, p := range etcds {
			if err := s.signal(p, syscall.SIGTERM); err != nil {
				return err
			}
		}
		return s.awaitEnd(ctx, etcds...)
	}}
}

// restarts checks how many restarts were used.
func restarts(n int) step {
	return step{fmt.Sprintf("restarts used: %d", n), func(_ context.Context, s *testbed) error {
		if used := s.world.restarts(); used != n {
			return fmt.Errorf("%d were used", used)
		}
		return nil
	}}
}

// restartsBetween checks that at least and at most so many restarts were used.
func restartsBetween(least, most int) step {
	return step{fmt.Sprintf("restarts used: %d to %d", least, most), func(_ context.Context, s *testbed) error {
		if used := s.world.restarts(); used < least || used > most {
			return fmt.Errorf("%d were used", used)
		}
		return nil
	}}
}

// waitingNode waits until a node waits for a place in the job.
func waitingNode(node int) step {
	return step{fmt.Sprintf("node %d waits", node), func(ctx context.Context, s *testbed) error {
		return s.await(ctx, func(*world) bool { return s.agents[node].announced })
	}}
}

// sameRanks checks that the workers of a node have the ranks that those of another had before the fault.
func sameRanks(old, now int) step {
	ranks := func(w *world, round, node int) (list []int) {
		for _, k := range w.in(round) {
			if k.Node == node {
				list = append(list, k.Rank)
			}
		}
		return list
	}
	return step{fmt.Sprintf("node %d has the ranks that node %d had", now, old), func(_ context.Context, s *testbed) error {
		w := s.world
		if a, b := ranks(w, w.before, old), ranks(w, w.newest(), now); !slices.Equal(a, b) {
			return fmt.Errorf("it has ranks %v, want %v", b, a)
		}
		return nil
	}}
}

func restartEtcd(member int) step {
	return step{fmt.Sprintf("member %d of etcd starts again", member), func(_ context.Context, s *testbed) error {
		return s.startEtcd(member)
	}}
}

func signalAgent(sig syscall.Signal, node int) step {
	return step{fmt.Sprintf("%s to the agent of node %d", unix.SignalName(sig), node), func(_ context.Context, s *testbed) error {
		return s.signal(s.agents[node], sig)
	}}
}

// pause lets time pass.
func pause(d time.Duration) step {
	return step{fmt.Sprintf("%v pass", d), func(ctx context.Context, s *testbed) error { return s.pass(ctx, d) }}
}

// undisturbedUntil waits for something, while all compute and nothing happens to them.
func undisturbedUntil(what string, is func(*testbed) (bool, error)) step {
	return step{what, func(ctx context.Context, s *testbed) error {
		newest := s.world.newest()
		var failed error
		err := s.await(ctx, func(w *world) bool {
			if w.newest() != newest || slices.ContainsFunc(w.in(newest), func(k *worker) bool { return !k.busy() }) {
				w.fail(fmt.Errorf("the workers were disturbed: %s", w.describe()))
			}
			so, err := is(s)
			failed = err
			return so || err != nil
		})
		return cmp.Or(err, failed)
	}}
}

// undisturbed lets time pass, and checks that all workers compute during that time and after it.
func undisturbed(d time.Duration) step {
	return step{fmt.Sprintf("for %v nothing happens", d), func(ctx context.Context, s *testbed) error {
		round := s.world.in(s.world.newest())
		if err := s.pass(ctx, d); err != nil {
			return err
		}
		then := make(map[*worker]int)
		for _, k := range round {
			then[k] = k.computations
		}
		return s.await(ctx, func(w *world) bool {
			if len(w.in(w.newest())) != len(round) || w.newest() != round[0].Round || slices.ContainsFunc(round, func(k *worker) bool { return !k.busy() }) {
				w.fail(fmt.Errorf("the workers were disturbed: %s", w.describe()))
			}
			return !slices.ContainsFunc(round, func(k *worker) bool { return k.computations == then[k] })
		})
	}}
}

// oldWorkers checks that the workers that a node had before the fault are still there: nobody can have ended them.
func oldWorkers(node int) step {
	return step{fmt.Sprintf("node %d still has its old workers", node), func(_ context.Context, s *testbed) error {
		if n := len(s.world.live(node)); n != s.world.nproc {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	}}
}

// noWorkers waits until a node has no workers.
func noWorkers(node int) step {
	return step{fmt.Sprintf("node %d has no workers", node), func(ctx context.Context, s *testbed) error {
		return s.await(ctx, func(w *world) bool { return len(w.live(node)) == 0 })
	}}
}

// obeyed waits until a node's agent has ended because of a signal. Its exit code is 0 if no worker failed after losing
// its peers.
func obeyed(sig syscall.Signal, node int) step {
	codes := []int{0, 128 + int(sig)}
	return step{fmt.Sprintf("the agent of node %d ends with exit code %d or %d", node, codes[0], codes[1]), func(ctx context.Context, s *testbed) error {
		p := s.agents[node]
		if err := s.await(ctx, func(*world) bool { return p.ended }); err != nil {
			return err
		}
		if !slices.Contains(codes, p.cmd.ProcessState.ExitCode()) {
			return fmt.Errorf("%s has ended: %v", p.name, p.cmd.ProcessState)
		}
		return nil
	}}
}

// nodesNamed returns "node 2" or "nodes 0, 1 and 2".
func nodesNamed(nodes []int) string {
	numbers := strings.Fields(strings.Trim(fmt.Sprint(nodes), "[]"))
	last := len(numbers) - 1
	if last == 0 {
		return "node " + numbers[0]
	}
	return "nodes " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}

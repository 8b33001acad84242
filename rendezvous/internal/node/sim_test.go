package node

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/testing/storetest"
)

var (
	simSeeds = flag.Int("sim.seeds", 0, "how many jobs TestSimulation plays; 0: as many as fit into the gate")
	simSeed  = flag.Uint64("sim.seed", 0, "the seed of the first job; without -sim.seeds, TestSimulation plays this job alone, and tells of it")
)

// TestSimulation plays jobs of 1 to 30 nodes over a simulated etcd, in virtual time, with faults. A seed that fails
// is played again, and told of, by
//
//	go test ./rendezvous/internal/node -run TestSimulation -v -sim.seed=SEED
//
// It does not run beside other tests: it would take the processors from them, whose leases run out.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 && *simSeeds == 0 {
		w := newSimJob(*simSeed)
		w.trace = func(text string) { t.Log(text) }
		if err := w.play(); err != nil {
			t.Errorf("seed %d: %v", *simSeed, err)
		}
		return
	}
	seeds := testkit.UnlessShort(100_000, 1000)
	switch {
	case *simSeeds > 0:
		seeds = *simSeeds
	case testkit.Race: // each job is played in one goroutine
		seeds = 30
	}
	if seed, err := playSeeds(max(1, *simSeed), seeds, func(*simWorld) {}); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// playSeeds plays the jobs of n seeds from first up, and returns the first of them that fails.
func playSeeds(first uint64, n int, change func(*simWorld)) (seed uint64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var next atomic.Uint64
	next.Store(first - 1)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				mine := next.Add(1)
				mu.Lock()
				stop := mine >= first+uint64(n) || err != nil
				mu.Unlock()
				if stop {
					return
				}
				w := newSimJob(mine)
				change(w)
				if e := w.play(); e != nil {
					mu.Lock()
					if err == nil || mine < seed {
						seed, err = mine, e
					}
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return seed, err
}

// TestSimulationRepeats: a seed plays the same job each time.
func TestSimulationRepeats(t *testing.T) {
	if testkit.Race {
		t.Skip("each job is played in one goroutine")
	}
	for seed := range uint64(30) {
		var texts [2]strings.Builder
		for i := range texts {
			w := newSimJob(seed)
			w.trace = func(line string) { texts[i].WriteString(line + "\n") }
			_ = w.play() // TestSimulation tells
		}
		if line, a, b := differ(texts[0].String(), texts[1].String()); line > 0 {
			t.Fatalf("seed %d: line %d is\n%s\nand then\n%s", seed, line, a, b)
		}
	}
}

// newSimJob draws a job and what is to happen to it.
func newSimJob(seed uint64) *simWorld {
	w := newSimWorld(seed)
	n := 2 + w.random.IntN(3)
	switch k := w.random.IntN(100); {
	case k < 5:
		n = 1
	case k < 20:
		n = 5 + w.random.IntN(4)
	case k < 22:
		n = 9 + w.random.IntN(22)
	}
	most := n
	if w.chance(25) {
		most = 1 + w.random.IntN(n) // there are spares
	}
	seconds := func(least, most int) time.Duration {
		return time.Duration(least+w.random.IntN(most-least+1)) * time.Second
	}
	c := Config{Config: rendezvous.Config{Rules: rendezvous.Rules{
		Max: most, Min: 1 + w.random.IntN(most), MaxRestarts: w.random.IntN(5), Lease: seconds(3, 10),
		LastCall: w.between(200*time.Millisecond, 4*time.Second), JoinTimeout: seconds(8, 25),
		ScaleUp: []rendezvous.ScaleUp{rendezvous.ScaleImmediate, rendezvous.ScaleImmediate, rendezvous.ScaleOnRestart, rendezvous.ScaleNever}[w.random.IntN(4)],
	}}}
	if w.chance(20) {
		c.MasterPort = 29500
	}
	w.record = newSimRecord(&c)
	w.record.ranked = w.chance(15) && most == n
	w.config = c
	w.length = w.between(4*time.Second, 25*time.Second)
	w.failing = []int{0, 20, 50}[w.random.IntN(3)]
	for i := range n {
		at := w.between(0, time.Second)
		if w.chance(15) {
			at = w.between(0, w.length)
		}
		w.after(at, func() { w.add(fmt.Sprint("n", i), i) })
	}
	for range w.random.IntN(6) {
		w.after(w.between(0, w.length), w.fault())
	}
	if w.chance(20) {
		w.after(w.between(time.Second, w.length), w.etcdFault())
	}
	return w
}

// add starts an agent.
func (w *simWorld) add(name string, rank int) {
	a := w.newAgent(name, w.config)
	if a.rank = rank; w.record.ranked {
		a.node.NodeRank = rank
	}
	a.start()
}

// fault draws one that happens to an agent.
func (w *simWorld) fault() func() {
	kind, at, d := w.random.IntN(11), w.random.IntN(1000), w.between(0, 20*time.Second)
	return func() {
		var alive []*simAgent
		for _, a := range w.agents {
			if !a.gone && !a.leaving {
				alive = append(alive, a)
			}
		}
		if len(alive) == 0 {
			return
		}
		a := alive[at%len(alive)]
		if at%3 == 0 { // the leader
			for _, other := range alive {
				if other.machine.leader.leads() {
					a = other
				}
			}
		}
		switch kind {
		case 0, 1, 2:
			w.say("%s is killed", a.name)
			a.exit(false)
			w.replace(a, d)
		case 3:
			w.say("the machine of %s vanishes", a.name)
			w.vanished = true
			a.exit(true)
			w.replace(a, d)
		case 4, 5, 6:
			w.say("%s is cut off from etcd for %v", a.name, d)
			w.longest += d
			a.cut = true
			w.after(d, func() { a.cut = false })
		case 10:
			b := alive[(at/7)%len(alive)]
			w.say("%s and %s do not reach each other for %v", a.name, b.name, d)
			w.longest += d
			w.apart = append(w.apart, simApart{a, b, w.now.Add(d)})
			a.losePeer(b)
			b.losePeer(a)
		case 7:
			w.say("%s is stopped for %v", a.name, d)
			a.frozen = latest(a.frozen, w.now.Add(d))
			w.longest += d
		default:
			if at%2 == 0 {
				a.leaveReason = errors.New("somebody wants it")
			}
			w.say("%s leaves: %v", a.name, a.leaveReason)
			a.step(leaving{})
			if r := a.entered; r != nil && r.Size > w.record.config.Min {
				left := rendezvous.OutcomeOf(a.leaveReason)
				a.send(r, reportDoc{Left: &left})
			}
			w.after(d%(a.node.StopTimeout+1), func() { // which its workers take to end
				a.leave(a.leaveReason)
				w.replace(a, d)
			})
		}
	}
}

// replace starts another agent on the node of one that is gone, or does not.
func (w *simWorld) replace(a *simAgent, d time.Duration) {
	if w.faulty && w.chance(60) {
		w.after(d/4, func() { w.add(a.name, a.rank) })
	}
}

// etcdFault draws one that happens to etcd.
func (w *simWorld) etcdFault() func() {
	kind, d := w.random.IntN(6), w.between(0, 12*time.Second)
	past := w.between(0, 10*time.Second)
	var kept *storetest.Memory
	w.after(past, func() { kept = w.store.Snapshot(0) })
	return func() {
		switch kind {
		case 0, 1:
			w.say("etcd forgets what was before")
			w.store.Forget()
			w.reconnect()
		case 2, 3:
			w.down(d, func() {})
		case 4:
			w.down(d, func() {
				w.record.lossy = true
				w.say("etcd is empty")
				w.setStore(storetest.NewMemory(w.random))
			})
		default:
			if kept != nil {
				w.down(d, func() {
					w.record.lossy = true
					w.say("etcd is as it was at revision %d", kept.Rev())
					w.setStore(kept)
				})
			}
		}
	}
}

// down stops etcd for a while.
func (w *simWorld) down(d time.Duration, meanwhile func()) {
	w.say("etcd is down for %v", d)
	w.longest += d
	w.up = false
	w.after(d, func() {
		meanwhile()
		w.up = true
		w.store.Extend()
		w.reconnect()
	})
}

// workersEnd draws how the workers of an agent end in a round.
func (w *simWorld) workersEnd(a *simAgent, r *simRound) {
	if w.story != nil {
		w.story.workersEnd(a, r)
		return
	}
	left := w.length - w.now.Sub(simBegin)
	if w.faulty && left > 0 && w.chance(w.failing) {
		w.after(w.between(0, 8*time.Second), func() {
			a.fail(r, w.chance(3))
			a.losePeers(r)
		})
		return
	}
	w.after(max(0, left)+w.between(0, 3*time.Second), func() { a.succeed(r) })
}

// fail reports that a worker has failed, whatever others do.
func (a *simAgent) fail(r *simRound, final bool) {
	if a.entered == r && !a.gone {
		a.world.record.tokens[r.Token].failed = true
		a.report(r, a.failure(r, final))
	}
}

// losePeers has workers of other agents fail because those of this one are gone. If its machine has vanished, those
// that cannot tell because of whom they fail take longer to notice it than its lease lasts.
func (a *simAgent) losePeers(r *simRound) {
	w := a.world
	for _, other := range w.agents {
		if other.entered != nil && other.entered.Token == r.Token && other != a && w.chance(60) {
			at := other.entered
			tells, after := w.chance(70), w.between(0, 500*time.Millisecond)
			if a.vanished && !tells {
				after += w.config.failureTimeout()
			}
			w.after(after, func() {
				f := other.failure(at, false)
				if tells {
					f.FailedPeer = &death.Peer{Rank: r.Place.FirstRank, Finder: f.Rank}
				}
				if tells && a.vanished {
					f.Unreachable = []rendezvous.Peer{a.workers(r)}
				}
				other.report(at, f)
			})
		}
	}
}

// losePeer may have workers of this agent fail because they do not reach those of another one.
func (a *simAgent) losePeer(b *simAgent) {
	w, r := a.world, a.entered
	if a == b || r == nil || b.entered == nil || b.entered.Token != r.Token || w.chance(30) {
		return
	}
	w.after(w.between(0, 4*time.Second), func() {
		if a.entered != r || b.entered == nil || a.gone {
			return
		}
		w.record.tokens[r.Token].failed = true // they may reach each other again when their agents try
		f := a.failure(r, false)
		f.Unreachable = []rendezvous.Peer{b.workers(b.entered)}
		a.report(r, f)
	})
}

// workers are those of an agent, for others that do not reach them.
func (a *simAgent) workers(r *simRound) rendezvous.Peer {
	return rendezvous.Peer{Rank: r.Place.FirstRank, Addr: a.executor.key}
}

// succeed reports that the workers have done their work.
func (a *simAgent) succeed(r *simRound) {
	w := a.world
	if a.entered == r && !a.gone {
		if w.succeeded[a.executor.key] == nil {
			w.succeeded[a.executor.key] = make(map[int]bool)
		}
		w.succeeded[a.executor.key][r.ID] = true
		a.report(r, nil)
	}
}

// play plays the job until its end.
func (w *simWorld) play() error {
	w.at(simBegin.Add(w.length), func() {
		w.say("no more faults")
		w.faulty = false
		for _, a := range w.agents {
			a.cut = false
		}
	})
	w.run(simBegin.Add(w.length), func() bool { return false })
	w.run(simBegin.Add(w.length+calmTime), func() bool {
		for _, a := range w.agents {
			if !a.gone {
				return false
			}
		}
		return w.up
	})
	if w.failed == nil {
		w.checkEnd()
	}
	for _, stop := range w.stops {
		stop()
	}
	return w.failed
}

// calmTime is how long a job may take to end when there are no more faults.
const calmTime = 3 * time.Minute

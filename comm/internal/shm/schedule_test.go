//go:build schedule && linux

package shm

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/testing/schedule"
	"github.com/gorun/gorun/comm/internal/wait"
)

// The tests of the protocols of this package, in orders that a scheduler chooses: see package schedule. A seed decides what ranks
// call, and in which order their accesses happen. A failure names its seed, and -schedule.seed runs it again.

var (
	budget   = flag.Duration("schedule.for", 40*time.Second, "how long to look for orders that fail, in all")
	onlySeed = flag.Uint64("schedule.seed", 0, "run that one only, and log what is done")
	first    = flag.Uint64("schedule.from", 1, "the first seed")
)

// A scenario is what ranks do in a new world.
type scenario struct {
	name  string
	share int // of the time
	begin func(w *world)
}

var models = []schedule.Model{schedule.TSO, schedule.Weak}

func TestSchedules(t *testing.T) {
	shares := 0
	for _, s := range scenarios {
		shares += s.share * len(models)
	}
	for _, s := range scenarios {
		for _, model := range models {
			t.Run(s.name+"/"+model.String(), func(t *testing.T) {
				w := newWorld(t, model)
				if *onlySeed != 0 {
					w.m.Trace = t.Logf
					if err := w.run(s, *onlySeed); err != nil {
						t.Fatal(err)
					}
					return
				}
				runs := 0
				for end := time.Now().Add(*budget * time.Duration(s.share) / time.Duration(shares)); time.Now().Before(end); runs++ {
					seed := *first + uint64(runs)
					if err := w.run(s, seed); err != nil {
						t.Fatalf("seed %d: %v\nrun it again: go test -tags schedule ./comm/internal/shm -run '%s' -schedule.seed %d", seed, err, t.Name(), seed)
					}
				}
				t.Logf("%d orders, %d accesses each; %d sleeps lasted until their first limit because a wake-up was missed", runs, w.accesses/max(runs, 1), w.missed)
			})
		}
	}
}

// A world is memory for a machine, and what threads use in it.
type world struct {
	t     testing.TB
	m     *schedule.Machine
	arena []byte
	rng   *rand.Rand // of the run: decides what ranks call

	n         int
	teams     []*Team
	threads   []*schedule.Thread
	heaps     [][]byte         // those of the ranks
	used      []int            // bytes of them
	waits     []*wait.LongWait // the long ones, by rank
	announced []error          // the news of another rank's end, by rank
	failures  []error

	streaming bool // the run tests streams, not a team
	dialogues [2]*dialogue

	allIsWell bool // nobody dies or gives up
	impatient int  // the rank that gives up in a long wait; -1: none

	beforeCall func(t *Team) // breaks something on purpose; may be nil
	forgetful  bool          // flags do not depend on earlier calls

	accesses, missed int
}

const (
	mostRanks = 4
	heapSize  = 16 << 10
)

// newWorld makes a world, with memory of a simulated machine.
func newWorld(t testing.TB, model schedule.Model) *world {
	size := Size(mostRanks) + mostRanks*heapSize
	memory, err := segment.Create(segment.WholePages(size))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, arena: memory.Bytes()}
	if err := segment.Populate(w.arena); err != nil {
		t.Fatal(err)
	}
	w.m = schedule.New(w.arena, model)
	w.m.Overslept = w.overslept
	cpu.Simulate(w.m)
	was := visible
	visible = cpu.Read
	t.Cleanup(func() {
		visible = was
		cpu.Simulate(nil)
		_ = memory.Close()
	})
	return w
}

// run runs s with that seed.
func (w *world) run(s scenario, seed uint64) error {
	w.rng = rand.New(rand.NewPCG(seed, 1))
	return w.runIn(newPCT(seed), s.begin)
}

func (w *world) runIn(order schedule.Chooser, begin func(w *world)) error {
	w.streaming = false
	err := w.m.Run(order, func() { begin(w) })
	w.accesses += w.m.Steps()
	return err
}

// ranks makes a team of n ranks, and runs part on each. A rank that returns an error has failed, and the others get to know.
func (w *world) ranks(n int, part func(t *Team) error) {
	w.n, w.teams, w.threads, w.heaps = n, w.teams[:0], w.threads[:0], w.heaps[:0]
	w.waits, w.announced, w.failures, w.used = make([]*wait.LongWait, n), make([]error, n), make([]error, n), make([]int, n)
	w.impatient, w.allIsWell = -1, true
	oversubscribed, ways := w.chance(3), choice.Chooser{Table: choice.SharedMemory}
	if w.chance(2) {
		ways.Table = choice.OwnProcessors
	}
	for r := range n {
		t, err := New(segment.Simulated(w.arena[:Size(n)]), n, r, wait.Processors{CPUs: 64, Ranks: n}, ways, w.onLongWait(r))
		if err != nil {
			w.t.Fatal(err)
		}
		t.waiter.Oversubscribed, t.populated, t.copyPolicy = oversubscribed, t.stagingSize, copyPolicy{nonTemporal: w.chance(3)}
		if oversubscribed {
			t.waiter.Spins = 1
		}
		w.teams = append(w.teams, t)
		w.heaps = append(w.heaps, w.arena[Size(mostRanks)+r*heapSize:][:heapSize:heapSize])
	}
	for r, t := range w.teams {
		w.threads = append(w.threads, w.m.Go(fmt.Sprintf("rank %d", r), func() {
			if w.failures[r] = part(t); w.failures[r] != nil {
				w.scribble(r)
			}
		}))
	}
}

func (w *world) chance(n int) bool { return w.rng != nil && w.rng.IntN(n) == 0 }

var errGivesUp = errors.New("gives up")

var errAnnounced = errors.New("another rank has failed")

// onLongWait waits as package core does: also for news of other ranks.
func (w *world) onLongWait(me int) OnLongWait {
	return func(_ int, d wait.LongWait) error {
		if w.impatient == me {
			return errGivesUp
		}
		if w.announced[me] == nil {
			w.waits[me] = &d
			d.Park()
			w.waits[me] = nil
		}
		if w.announced[me] == nil && !d.Done() {
			return errors.New("woken without a reason")
		}
		return w.announced[me]
	}
}

// announce wakes the ranks that wait when another one is gone. It returns when all are.
func (w *world) announce() {
	gone := func(r int) bool { return w.threads[r].Dead() || w.threads[r].Ended() && w.failures[r] != nil }
	over := func() bool {
		for _, t := range w.threads {
			if !t.Dead() && !t.Ended() {
				return false
			}
		}
		return true
	}
	news := func() bool {
		for r := range w.n {
			if gone(r) {
				return true
			}
		}
		return over()
	}
	if w.m.Block(news); over() {
		return
	}
	for r := range w.n {
		w.announced[r] = errAnnounced
		if d := w.waits[r]; d != nil {
			d.Wake()
		}
	}
}

// overslept makes sure that no rank sleeps for long after what it waits for has happened, and that not all sleep if nobody fails.
func (w *world) overslept(t *schedule.Thread, limit time.Duration) {
	if limit > wait.FirstPark && w.allIsWell {
		w.m.Fail(fmt.Errorf("lost wake-up: all sleep, %s for %v", t.Name, limit))
	}
	for r, t := range w.teams {
		c := &t.ranks[r].wait
		if c.Awaits == 0 || !w.isUp(c) || w.threads[r].Dead() || w.threads[c.Awaits-1].Dead() { // it died before it could wake the sleeper
			continue
		}
		if limit > wait.FirstPark {
			w.m.Fail(fmt.Errorf("lost wake-up: rank %d sleeps for rank %d, which has come", r, c.Awaits-1))
		}
		w.missed++
	}
}

func (w *world) isUp(c *wait.State) bool { return w.teams[0].ranks[c.Awaits-1].clock >= c.WakeAt }

// modelled is of for operands in simulated memory.
func modelled(of *Reduction) *Reduction {
	red, kernel, fold := *of, of.Kernel, of.Fold
	red.Kernel = func(dst, a, b []byte) {
		sum := make([]byte, len(dst))
		kernel(sum, cpu.Read(a), cpu.Read(b))
		cpu.CopyPlain(dst, sum)
	}
	if fold != nil {
		red.Fold = func(dst []byte, sources [][]byte) {
			sum := make([]byte, len(dst))
			read := make([][]byte, len(sources))
			for i, s := range sources {
				read[i] = cpu.Read(s)
			}
			fold(sum, read)
			cpu.CopyPlain(dst, sum)
		}
	}
	return &red
}

// begin starts call number seq.
func (w *world) begin(t *Team, seq uint64, call Call, history uint64) {
	if w.beforeCall != nil {
		w.beforeCall(t)
	}
	if w.forgetful {
		history = (call.What + call.RootAndBefore<<20 + call.Count<<30 + 1) * 0x9e3779b97f4a7c15
	}
	t.Begin(seq, call, history)
}

//go:build schedule && linux

package shm

import (
	"math/rand/v2"

	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// pct chooses at random, but changes its mind seldom (Burckhardt, Kothari, Musuvathi and Nagarakatte: A Randomized Scheduler with
// Probabilistic Guarantees of Finding Bugs, ASPLOS 2010): all have priorities, and the first that can goes on. At some points
// the one that would go on becomes the last, and so does who has looked in vain. It is a [schedule.Chooser].
type pct struct {
	rng       *rand.Rand
	priority  []int // of threads and buffers
	last      int   // the least priority
	count     int
	changes   []int // when priorities change
	odd       int   // in how many picks of 16 it is not what happens mostly
	farthest  bool  // it is the last possibility then
	impatient int   // how often of 16 who has looked in vain goes on
	slow      int   // how often of 16 a buffer waits when a store of it has reached the memory
}

// newPCT is the order of that number. The same threads run in the same order again.
func newPCT(seed uint64) *pct {
	rng := rand.New(rand.NewPCG(seed, 0x5c4ed))
	p := &pct{rng: rng}
	p.odd = [...]int{0, 1, 4, 8, 15}[rng.IntN(5)]
	p.impatient = [...]int{0, 0, 4, 12}[rng.IntN(4)]
	p.farthest = rng.IntN(3) == 0
	p.slow = [...]int{0, 0, 4, 12}[rng.IntN(4)]
	length := 32 << (2 * rng.IntN(5)) // how long the run may be
	for range rng.IntN(6) {
		p.changes = append(p.changes, 1+rng.IntN(length))
	}
	return p
}

func (p *pct) Next(ready []schedule.Actor, _ int) int {
	p.count++
	best := p.best(ready)
	for _, at := range p.changes {
		if at == p.count {
			p.lower(ready[best])
			best = p.best(ready)
		}
	}
	if ready[best].Buffer && p.rng.IntN(16) < p.slow {
		p.lower(ready[best])
	}
	return best
}

func (p *pct) best(ready []schedule.Actor) int {
	best, most := 0, 0
	for i, a := range ready {
		k := indexOf(a)
		for k >= len(p.priority) {
			p.priority = append(p.priority, 1+p.rng.IntN(1<<20))
		}
		pr := p.priority[k]
		if i == 0 || pr > most {
			best, most = i, pr
		}
	}
	return best
}

func (p *pct) lower(a schedule.Actor) {
	p.last--
	p.priority[indexOf(a)] = p.last
}

func indexOf(a schedule.Actor) int {
	if a.Buffer {
		return 2*a.Thread + 1
	}
	return 2 * a.Thread
}

func (p *pct) Idle(a schedule.Actor) {
	if p.rng.IntN(16) >= p.impatient {
		p.lower(a)
	}
}

func (p *pct) Pick(n int) int {
	if p.rng.IntN(16) >= p.odd {
		return 0
	}
	if p.farthest {
		return n - 1
	}
	return 1 + p.rng.IntN(n-1)
}

//go:build schedule && linux

package shm

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

var (
	bound   = flag.Int("schedule.bound", 2, "how many choices may be unusual, of the orders that are all gone through")
	choices = flag.String("schedule.choices", "", "run that order only, of those that are all gone through, and log what is done; before a / stands before which access a rank dies")
)

// A shortScenario is what two ranks do in few accesses.
type shortScenario struct {
	name  string
	bound int
	begin func(w *world) *program
}

// shortScenarios are the short operations.
func shortScenarios(bound int) (all []shortScenario) {
	for i, op := range operations {
		if op.name == "one after the other" {
			continue // the others, one after the other
		}
		all = append(all, shortScenario{op.name, bound, func(w *world) *program {
			p := newProgram(w)
			p.calls = []called{{op: i, size: 8, root: 1, red: "sum", inHeap: make([]bool, 2)}}
			w.ranks(2, p.part)
			return p
		}})
	}
	return all
}

// All orders of two ranks in every short operation, and of one that sleeps while the other comes, with few unusual choices.
func TestSchedulesOneAfterTheOther(t *testing.T) {
	for _, s := range append(shortScenarios(*bound), shortScenario{"sleep", *bound + 1, (*world).sleeper}) {
		for _, model := range models {
			t.Run(s.name+"/"+model.String(), func(t *testing.T) {
				w := newWorld(t, model)
				t.Logf("%d orders", w.inAll(t, s.bound, 0, func(w *world) { s.begin(w) }))
			})
		}
	}
}

// The same, with a rank that stops for ever before any of its accesses. The other one gets its result, or an error.
func TestSchedulesOfDeaths(t *testing.T) {
	for _, s := range shortScenarios(*bound - 1) {
		for _, model := range models {
			for loser := range 2 {
				t.Run(fmt.Sprintf("%s/%v/rank %d", s.name, model, loser), func(t *testing.T) {
					w := newWorld(t, model)
					point, n := 1, 0
					if *choices != "" {
						point, _ = chosenOrder(t)
					}
					for died := true; died; point++ {
						died = point == 1
						n += w.inAll(t, s.bound, point, func(w *world) {
							died = died || len(w.threads) > 0 && w.threads[loser].Dead() // in the order before
							p := s.begin(w)
							p.loser, w.allIsWell = loser, false
							w.threads[loser].DiesAt = point
							w.m.Go("news", w.announce)
						})
					}
					t.Logf("%d orders, %d points", n, point-1)
				})
			}
		}
	}
}

// chosenOrder is the one that the flag says, and before which access a rank dies.
func chosenOrder(t *testing.T) (point int, order schedule.Chooser) {
	before, after, _ := strings.Cut(*choices, "/")
	point, err := strconv.Atoi(before)
	if err == nil {
		order, err = schedule.ParseChoices(after)
	}
	if err != nil {
		t.Fatal(err)
	}
	return point, order
}

// inAll runs one order after the other, and fails the test with one that fails; or that one only which the flag says. Before access
// number point a rank dies; 0: none.
func (w *world) inAll(t *testing.T, bound, point int, begin func(w *world)) int {
	if *choices != "" {
		_, order := chosenOrder(t)
		w.m.Trace = t.Logf
		if err := w.runIn(order, begin); err != nil {
			t.Fatal(err)
		}
		return 1
	}
	n, order, err := w.all(bound, begin)
	if err != nil {
		t.Fatalf("order %d: %v\nrun it again: go test -tags schedule ./comm/internal/shm -run '%s' -schedule.choices %d/%s", n, err, t.Name(), point, order)
	}
	return n
}

// all runs one order after the other, until one fails.
func (w *world) all(bound int, begin func(w *world)) (n int, failed fmt.Stringer, err error) {
	w.rng = nil
	e := schedule.NewExhaustive(bound)
	for more := true; more; more = e.More() {
		n++
		if err := w.runIn(e, begin); err != nil {
			return n, e, err
		}
	}
	return n, nil, nil
}

// sleeper lets a rank park until another one comes.
func (w *world) sleeper() *program {
	w.ranks(2, func(t *Team) error {
		w.begin(t, 1, Call{}, 1)
		if t.me == 0 {
			t.done(1)
			return nil
		}
		for cpu.Load(&t.ranks[0].clock) < t.time(1) {
			t.waiter.Park(0, t.time(1), time.Hour, new(atomic.Bool))
		}
		return nil
	})
	return nil
}

//go:build schedule && linux

package shm

import (
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/schedule"
)

var (
	bound   = flag.Int("schedule.bound", 2, "how many choices may be unusual, of the orders that are all gone through")
	choices = flag.String("schedule.choices", "", "run that order only, of those that are all gone through, and tell what is done")
)

// All orders of two ranks in every short operation, and of one that sleeps while the other comes, with few unusual choices.
func TestSchedulesOneAfterTheOther(t *testing.T) {
	type short struct {
		name  string
		bound int
		begin func(w *world)
	}
	shorts := []short{{"sleep", *bound + 1, (*world).sleeper}}
	for i, op := range operations {
		if op.name == "one after the other" {
			continue // the others, one after the other
		}
		shorts = append(shorts, short{op.name, *bound, func(w *world) {
			p := &program{w: w, loser: -1, until: -1}
			p.calls = []called{{op: i, size: 8, root: 1, red: "sum", inHeap: make([]bool, 2)}}
			w.ranks(2, p.part)
		}})
	}
	for _, s := range shorts {
		for _, model := range models {
			t.Run(s.name+"/"+model.String(), func(t *testing.T) {
				w := newWorld(t, model)
				if *choices != "" {
					order, err := schedule.ParseChoices(*choices)
					if err != nil {
						t.Fatal(err)
					}
					w.m.Trace = t.Logf
					if err := w.runIn(order, s.begin); err != nil {
						t.Fatal(err)
					}
					return
				}
				n, order, err := w.all(s.bound, s.begin)
				if err != nil {
					t.Fatalf("order %d: %v\nrun it again: go test -tags schedule ./comm/internal/shm -run '%s' -schedule.choices %s", n, err, t.Name(), order)
				}
				t.Logf("%d orders", n)
			})
		}
	}
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

// sleeper lets a rank sleep for another one that comes.
func (w *world) sleeper() {
	w.ranks(2, func(t *Team) error {
		w.begin(t, 1, Call{})
		if t.me == 0 {
			t.done(1)
			return nil
		}
		for cpu.Load(&t.ranks[0].clock) < t.time(1) {
			t.nap(0, t.time(1), time.Hour, new(atomic.Bool))
		}
		return nil
	})
}

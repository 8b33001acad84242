package drill

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A tale is a job, told step by step.
type tale struct {
	*observer
	dead map[*worker]bool
	now  time.Time
}

func newTale(nproc int) *tale {
	t := &tale{dead: make(map[*worker]bool), now: time.Unix(0, 0)}
	t.observer = newObserver(nproc, Restart)
	t.alive = func(k *worker) bool { return !t.dead[k] }
	return t
}

// gang starts the workers of a node, which compute.
func (t *tale) gang(round, node, first, world int) (gang []*worker) {
	for i := range t.nproc {
		k := &worker{place: place{Node: node, Local: i, Round: round, Rank: first + i, World: world, Master: fmt.Sprint("m", round)}}
		gang = append(gang, k)
		t.tell(k, started)
		t.tell(k, computed)
	}
	return gang
}

// tell is a millisecond later.
func (t *tale) tell(k *worker, what kind) {
	t.now = t.now.Add(time.Millisecond)
	t.receive(t.now, k, message{Kind: what, Error: "of stuck only"})
}

func (t *tale) die(gang ...*worker) {
	for _, k := range gang {
		t.dead[k] = true
		t.now = t.now.Add(time.Millisecond)
		t.lose(t.now, k)
	}
}

func TestTogether(t *testing.T) {
	w := newTale(2)
	if w.together([]int{0, 1}) {
		t.Error("nobody computes together")
	}
	a := w.gang(1, 0, 0, 4)
	if w.together([]int{0, 1}) || w.together([]int{0}) {
		t.Error("half of a world computes together")
	}
	b := w.gang(1, 1, 2, 4)
	if !w.together([]int{0, 1}) || w.together([]int{0, 2}) || w.together([]int{0}) {
		t.Errorf("both nodes should compute together, and none without the other: %s", w.describe())
	}
	w.tell(b[0], stuck)
	if w.together([]int{0, 1}) {
		t.Error("a worker that is stuck computes")
	}
	w.die(a...)
	w.die(b...)
	w.gang(2, 1, 0, 2)
	if !w.together([]int{1}) {
		t.Errorf("node 1 should compute alone: %s", w.describe())
	}
	if w.wrong != nil {
		t.Error(w.wrong)
	}
}

func TestNoticed(t *testing.T) {
	w := newTale(1)
	a, b := w.gang(1, 0, 0, 2), w.gang(1, 1, 1, 2)
	w.inject(w.now, fault{hits: onNode(1)})
	w.die(b...)
	w.tell(a[0], computed)
	if !w.fault.noticed.IsZero() {
		t.Error("the victim's end, or work, counts as a reaction")
	}
	w.tell(a[0], stuck)
	at := w.now
	w.tell(a[0], stopping)
	if w.fault.noticed != at {
		t.Errorf("noticed at %v, want %v", w.fault.noticed, at)
	}
}

// TestWrong: what is promised of every worker that starts.
func TestWrong(t *testing.T) {
	for want, happens := range map[string]func(*tale){
		"rank 0 on node 1 in round 1 has started twice": func(w *tale) {
			w.gang(1, 0, 0, 2)
			w.gang(1, 1, 0, 2)
		},
		"rank 1 on node 1 in round 1 knows of 3 workers, 0 restarts, master m1, and rank 0 on node 0 in round 1 of 2 workers, 0 restarts, master m1": func(w *tale) {
			w.gang(1, 0, 0, 2)
			w.gang(1, 1, 1, 3)
		},
		"rank 0 on node 0 in round 2 has started while rank 0 on node 0 in round 1 is alive": func(w *tale) {
			w.gang(1, 0, 0, 1)
			w.gang(2, 0, 0, 1)
		},
		"rank 0 on node 0 in round 1 has started after rank 0 on node 0 in round 2": func(w *tale) {
			w.die(w.gang(2, 0, 0, 1)...)
			w.gang(1, 0, 0, 1)
		},
	} {
		w := newTale(1)
		happens(w)
		if w.wrong == nil || w.wrong.Error() != want {
			t.Errorf("wrong: %v, want %s", w.wrong, want)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		before, now []int
		kept        bool
	}{
		{[]int{0, 1, 2}, []int{0, 1, 2}, true},
		{[]int{2, 0, 1}, []int{2, 1}, true},
		{[]int{1, 0}, []int{2, 1, 0}, true},
		{[]int{0, 1, 2}, []int{2, 0}, false},
	} {
		w := newTale(1)
		for round, nodes := range [][]int{c.before, c.now} {
			for rank, node := range nodes {
				w.die(w.gang(round+1, node, rank, len(nodes))...)
			}
		}
		if err := w.order(); (err == nil) != c.kept {
			t.Errorf("%v, then %v: %v", c.before, c.now, err)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	repeated := Result{Scenario: "b", Policy: Replace}
	repeated.add(Outcome{Fault: "SIGTERM", Noticed: new(7.0), Held: true})
	repeated.add(Outcome{Fault: "SIGTERM", Noticed: new(9.0), Why: "it is slow", Leftovers: Leftovers{Processes: 2, Files: 1}})
	repeated.add(Outcome{Fault: "SIGTERM", Noticed: new(3.0), NewRound: new(4.0), Held: true})
	once := Result{Scenario: "a", Policy: Restart}
	once.add(Outcome{Fault: "SIGKILL", Noticed: new(0.6), NewRound: new(99.0), FirstCorrect: new(1200.4), Held: true})
	err := Table(&b, []Result{once, repeated, {Scenario: "c", Policy: Restart, Skipped: true, Why: "no root"}})
	want := `
SCENARIO  ON FAILURE  FAULT    NOTICED   NEW ROUND  FIRST CORRECT  HELD     LEFT OVER
a         restart     SIGKILL  1 ms      99 ms      1200 ms        yes      none
b         replace     SIGTERM  7 (9) ms  4 ms       -              NO       2 processes, 1 file
c         restart     -        -         -          -              skipped  -

b, replace: NO in 1 of 3 runs, at first: it is slow
c, restart: skipped: no root
`
	if got := "\n" + b.String(); err != nil || got != want {
		t.Errorf("%v: got%swant%s", err, got, want)
	}
}

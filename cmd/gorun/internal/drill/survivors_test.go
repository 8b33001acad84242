package drill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// computes is a millisecond later.
func (t *tale) computes(k *worker, state int) {
	t.now = t.now.Add(time.Millisecond)
	t.receive(t.now, k, message{Kind: computed, State: state})
}

// rejoin brings a worker into another round, in which it computes.
func (t *tale) rejoin(k *worker, round, rank, world, state int) *worker {
	p := k.place
	p.Round, p.Rank, p.World, p.Master = round, rank, world, "m"
	now := k.inRound(p)
	t.tell(now, rejoined)
	t.computes(now, state)
	return now
}

// replacement begins another worker in place of a worker.
func (t *tale) replacement(k *worker, round, rank, state int) *worker {
	p := k.place
	p.Round, p.Rank, p.Master = round, rank, "m"
	p.Pid += 1000
	now := &worker{place: p}
	t.tell(now, started)
	t.computes(now, state)
	return now
}

// goOn brings workers into round 2, with the same ranks and in state 8, or starts others in the place of those that are new.
func (t *tale) goOn(all []*worker, isNew ...int) {
	for i, k := range all {
		if slices.Contains(isNew, i) {
			t.replacement(k, 2, i, 8)
		} else {
			t.rejoin(k, 2, i, len(all), 8)
		}
	}
}

// TestSurvivors: what is promised with --on-failure=replace when rank 1 of two nodes with two workers each has been killed.
func TestSurvivors(t *testing.T) {
	died := &death{Rank: 1, ExitCode: -9}
	learn := func(d *death) func(*tale, []*worker) {
		return func(w *tale, all []*worker) {
			all[0].death, all[0].failure = d, "EOF"
			w.goOn(all, 1)
		}
	}
	for want, happens := range map[string]func(*tale, []*worker){
		"<nil>": func(w *tale, all []*worker) { w.goOn(all, 1) },
		"rank 3 on node 1 in round 1, which the fault did not hit, has not outlived its round": func(w *tale, all []*worker) {
			w.die(all[3])
			w.goOn(all, 1, 3)
		},
		"rank 3 on node 1 in round 1 is alive in round 2": func(w *tale, all []*worker) { w.goOn(all, 1, 3) },
		"rank 2 on node 1 in round 1 has become rank 3 on node 1 in round 2, although the nodes are the same": func(w *tale, all []*worker) {
			w.rejoin(all[0], 2, 0, 4, 8)
			w.replacement(all[1], 2, 1, 8)
			w.rejoin(all[2], 2, 3, 4, 8)
			w.rejoin(all[3], 2, 2, 4, 8)
		},
		"rank 1 on node 0 in round 2 has begun in state 3, where rank 0 on node 0 in round 1 was in state 7": func(w *tale, all []*worker) {
			w.rejoin(all[0], 2, 0, 4, 8)
			w.replacement(all[1], 2, 1, 3)
			w.rejoin(all[2], 2, 2, 4, 8)
			w.rejoin(all[3], 2, 3, 4, 8)
		},
		"rank 0 on node 0 in round 2 is in state 2, where it was in state 7 before": func(w *tale, all []*worker) {
			w.rejoin(all[0], 2, 0, 4, 2)
		},
		"rank 0 on node 0 in round 1 has not learned who died of what: EOF":                     learn(nil),
		"rank 0 on node 0 in round 1 has learned of exit code 1, want -9":                       learn(&death{Rank: 1, ExitCode: 1}),
		"rank 0 on node 0 in round 1 has learned that memory has run out: true, want false":     learn(&death{Rank: 1, ExitCode: -9, OutOfMemory: true}),
		"rank 0 on node 0 in round 1 has learned that rank 2 died, which the fault did not hit": learn(&death{Rank: 2, ExitCode: -9}),
	} {
		w := newTale(2)
		w.replace = true
		all := append(w.gang(1, 0, 0, 4), w.gang(1, 1, 2, 4)...)
		for _, k := range all {
			w.computes(k, 7)
			k.death = died
		}
		w.inject(w.now, fault{hits: func(k *worker) bool { return k == all[1] }, exitCode: -9})
		w.die(all[1])
		happens(w, all)
		err := w.wrong
		if err == nil {
			err = w.checkRound()
		}
		if err == nil {
			err = w.checkSurvivors()
		}
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestKilledWhileMemoryIsShort: if the kernel has killed anything for want of memory meanwhile, gorun cannot tell whether it was the worker.
func TestKilledWhileMemoryIsShort(t *testing.T) {
	for _, c := range []struct{ short, learned, fits bool }{
		{false, false, true}, {false, true, false}, {true, false, true}, {true, true, true},
	} {
		w := newTale(2)
		w.memoryWasShort = func() bool { return c.short }
		all := w.gang(1, 0, 0, 2)
		all[0].death = &death{Rank: 1, ExitCode: -9, OutOfMemory: c.learned}
		w.inject(w.now, fault{hits: func(k *worker) bool { return k == all[1] }, exitCode: -9})
		if err := w.checkCause(all[0]); (err == nil) != c.fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTimeline: a worker that follows another one in the same place begins there when it starts, even if the other one's end comes later.
func TestTimeline(t *testing.T) {
	w := newTale(1)
	w.replace = true
	k := w.gang(1, 0, 0, 1)[0]
	w.tell(k, stuck)
	origin := w.now
	k = w.rejoin(k, 2, 0, 1, 1)
	w.replacement(k, 3, 0, 1)
	w.die(k)
	tracks := w.timeline.since(origin, w.now).Tracks
	if len(tracks) != 1 || *tracks[0].Node != 0 || *tracks[0].Local != 0 {
		t.Fatalf("the tracks are %+v", tracks)
	}
	var got []string
	for _, s := range tracks[0].Spans {
		got = append(got, fmt.Sprintf("%s %v %v", s.State, s.From, s.To))
	}
	const want = "joining -2 -1, computing -1 0, waiting 0 1, joining 1 2, computing 2 3, joining 3 4, computing 4 5"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}

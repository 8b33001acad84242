package diagnosis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// operation is the receive in which rank waits for another.
func operation(rank, from int) Operation {
	return Operation{Wait: Wait{Rank: rank, For: from, In: fmt.Sprintf("Recv #%d", rank)}}
}

// What a stall comes to, by what is known of the rank that is waited for.
func TestWhatAStallComesTo(t *testing.T) {
	asleep := Activity{Text: "it sleeps, since", Ago: time.Second}
	for name, c := range map[string]struct {
		op     Operation
		report *WaitReport // that came two seconds ago
		asked  time.Duration
		state  string
		kind   Kind
		rank   int
		text   string
	}{
		"any source":   {op: operation(0, -1), kind: PeerFailed, rank: -1, text: "nobody has sent what Recv #0 waits for"},
		"itself":       {op: operation(0, 0), kind: Deadlocked, rank: 0, text: "deadlock: rank 0 waits for itself in Recv #0"},
		"not asked":    {op: operation(0, 1), kind: PeerFailed, rank: 1, text: "has not answered yet"},
		"asked lately": {op: operation(0, 1), asked: time.Second, kind: PeerFailed, rank: 1, text: "has not answered yet"},
		"silent":       {op: operation(0, 1), asked: 20 * time.Second, kind: PeerFailed, rank: 1, text: "does not answer: it has stopped, or is cut off"},
		"stopped":      {op: operation(0, 1), asked: 20 * time.Second, state: "it is being debugged", kind: PeerFailed, rank: 1, text: "does not answer: it is being debugged"},
		"silent after an answer": {
			op: operation(0, 1), report: &WaitReport{Activity: asleep}, asked: 20 * time.Second,
			kind: PeerFailed, rank: 1, text: "does not answer: it has stopped, or is cut off",
		},
		"busy": {
			op: operation(0, 1), report: &WaitReport{Activity: asleep},
			kind: PeerFailed, rank: 1, text: "has not sent what Recv #0 waits for: it sleeps, since 3s ago",
		},
		"busy receiver": {
			op: Operation{Wait: Wait{0, 1, "Send #4"}, IsSend: true}, report: &WaitReport{Activity: Activity{Text: "it computes"}},
			kind: PeerFailed, rank: 1, text: "has not received what Send #4 offers: it computes",
		},
		"behind": {
			op: Operation{Wait: Wait{0, 1, "Barrier #3"}, Seq: 3}, report: &WaitReport{Seq: 2, Activity: Activity{Text: "it computes"}},
			kind: PeerFailed, rank: 1, text: "has not called Barrier #3: it computes",
		},
		"in the same collective": {
			op: Operation{Wait: Wait{0, 1, "Barrier #3"}, Seq: 3}, report: &WaitReport{Seq: 3, Activity: Activity{Text: "it computes"}},
			kind: PeerFailed, rank: 1, text: "is late in Barrier #3: it computes",
		},
		"held up by another": {
			op:     operation(0, 1),
			report: &WaitReport{Chain: []Wait{{1, 2, "Recv #1"}}, Suspect: &Suspect{2, Activity{Text: "sleeps, since", Ago: time.Second}}},
			kind:   PeerFailed, rank: 2, text: "sleeps, since 3s ago",
		},
		"a circle": {
			op: operation(0, 1), report: &WaitReport{Chain: []Wait{{1, 2, "Recv #1"}, {2, 0, "Send #1"}}},
			kind: Deadlocked, rank: 0, text: "deadlock: rank 0 waits for rank 1 in Recv #0, rank 1 waits for rank 2 in Recv #1, rank 2 waits for rank 0 in Send #1",
		},
		"a circle of others": {
			op: operation(0, 1), report: &WaitReport{Chain: []Wait{{1, 2, "Recv #1"}, {2, 1, "Send #1"}}},
			kind: Deadlocked, rank: 1, text: "deadlock: rank 1 waits for rank 2 in Recv #1, rank 2 waits for rank 1 in Send #1",
		},
		"a chain that has changed": {
			op: operation(0, 1), report: &WaitReport{Chain: []Wait{{1, 2, "Recv #1"}}},
			kind: PeerFailed, rank: 2, text: "is waited for",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := epoch.Add(time.Minute)
			s := NewStall(epoch, 0)
			if c.report != nil {
				s.Answered(c.report, now.Add(-2*time.Second))
			}
			if c.asked > 0 {
				s.Asked(now.Add(-c.asked))
			}
			s.Warning(c.op, c.state, now)
			if f := s.Failure(c.op, now); f.Kind != c.kind || f.Rank != c.rank || f.Text != c.text || !f.Late {
				t.Errorf("got %s, rank %d: %s\nwant %s, rank %d: %s", f.Kind, f.Rank, f.Text, c.kind, c.rank, c.text)
			}
		})
	}
}

// Ranks that each wait for one other, at most, and pass on what they are told, all come to the same: to the rank at the end of their
// chain, or to the circle that it leads to.
func TestChainsLeadToTheSameSuspect(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(2, 12).Draw(t, "size")
		waitsFor := make([]int, size) // or, if that is the rank itself, it does not wait
		stalls := make([]Stall, size)
		for r := range size {
			waitsFor[r] = rapid.IntRange(0, size-1).Draw(t, fmt.Sprint("rank ", r, " waits for"))
			stalls[r] = NewStall(epoch, 0)
		}
		report := func(r int) *WaitReport {
			if waitsFor[r] == r {
				return &WaitReport{Activity: Activity{Text: "it computes"}}
			}
			chain, suspect := stalls[r].Follow(operation(r, waitsFor[r]), epoch)
			got := DecodeWaitReport((&WaitReport{Chain: chain, Suspect: suspect}).Encode(16<<10), size)
			if got == nil {
				t.Fatalf("rank %d says what makes no sense", r)
			}
			return got
		}
		for range size { // questions
			for r := range size {
				if waitsFor[r] != r {
					stalls[r].Answered(report(waitsFor[r]), epoch)
				}
			}
		}
		for r := range size {
			end, seen := r, []int{}
			for waitsFor[end] != end && !slices.Contains(seen, end) {
				seen = append(seen, end)
				end = waitsFor[end]
			}
			if len(seen) == 0 {
				continue
			}
			f := stalls[r].Failure(operation(r, waitsFor[r]), epoch)
			if isCircle := waitsFor[end] != end; isCircle {
				circle := seen[slices.Index(seen, end):]
				if f.Kind != Deadlocked || len(f.Waits) != len(circle) || !slices.Contains(circle, f.Rank) {
					t.Fatalf("rank %d: %+v, want the circle %v", r, f, circle)
				}
			} else if f.Kind != PeerFailed || f.Rank != end {
				t.Fatalf("rank %d: %+v, want rank %d", r, f, end)
			}
		}
	})
}

// An answer is news when it gives another reason.
func TestNewsIsAnotherReason(t *testing.T) {
	s := NewStall(epoch, 0)
	for i, c := range []struct {
		report WaitReport
		news   bool
	}{
		{WaitReport{Activity: Activity{Text: "it computes", Ago: 1}}, true},
		{WaitReport{Activity: Activity{Text: "it computes", Ago: 2}}, false},
		{WaitReport{Activity: Activity{Text: "it sleeps", Ago: 2}}, true},
		{WaitReport{Activity: Activity{Text: "it sleeps"}, Chain: []Wait{{1, 2, "Recv #1"}}}, true},
		{WaitReport{Activity: Activity{Text: "it sleeps"}, Chain: []Wait{{1, 2, "Recv #1"}}, Suspect: &Suspect{2, Activity{Text: "sleeps"}}}, true},
		{WaitReport{Activity: Activity{Text: "it sleeps"}, Chain: []Wait{{1, 2, "Recv #1"}}, Suspect: &Suspect{2, Activity{Text: "sleeps", Ago: 9}}}, false},
		{WaitReport{Activity: Activity{Text: "it sleeps"}, Chain: []Wait{{1, 2, "Recv #1"}}, Suspect: &Suspect{3, Activity{Text: "sleeps"}}}, true},
	} {
		if news := s.Answered(&c.report, epoch); news != c.news {
			t.Errorf("answer %d is news: %v, want %v", i, news, c.news)
		}
	}
}

// The log is told after a while, then each time that the wait has doubled, by the rank that is nearest to the reason.
func TestWhenTheLogIsTold(t *testing.T) {
	s := NewStall(epoch, 0)
	op := operation(0, 1)
	s.Answered(&WaitReport{Activity: Activity{Text: "it computes"}}, epoch)
	var told []int
	for second := range 100 {
		if s.Warning(op, "", epoch.Add(time.Duration(second)*time.Second)) != nil {
			told = append(told, second)
		}
	}
	if want := []int{10, 20, 40, 80}; !slices.Equal(told, want) {
		t.Errorf("told after %v seconds, want %v", told, want)
	}
	far := NewStall(epoch, 0)
	far.Answered(&WaitReport{Chain: []Wait{{1, 2, "Recv #1"}}, Suspect: &Suspect{2, Activity{Text: "sleeps"}}}, epoch)
	if suspect := far.Warning(op, "", epoch.Add(time.Minute)); suspect != nil {
		t.Errorf("a rank that waits for one that waits tells of %+v", suspect)
	}
	for rank, tells := range map[int]bool{0: true, 1: false} { // of a circle the lowest one does
		s := NewStall(epoch, 0)
		s.Answered(&WaitReport{Chain: []Wait{operation(1-rank, rank).Wait}}, epoch)
		if suspect := s.Warning(operation(rank, 1-rank), "", epoch.Add(time.Minute)); (suspect != nil) != tells {
			t.Errorf("rank %d of a circle of 0 and 1 tells of %+v", rank, suspect)
		}
	}
}

// Of members that do not come, one that waits for nobody is at fault.
func TestMissingRanks(t *testing.T) {
	held := func(rank, by int) *WaitReport {
		return &WaitReport{Chain: []Wait{{rank, by, "Recv #1"}}, Suspect: &Suspect{by, Activity{Text: "sleeps"}}}
	}
	m := &Missing{Seq: 3, Ranks: []int{4, 1, 2, 3}}
	m.Reported(1, held(1, 3))
	m.Reported(2, held(2, 3))
	m.Reported(3, &WaitReport{Seq: 2})
	m.Reported(4, held(4, 3))
	m.Reported(4, &WaitReport{Seq: 3})
	m.Reported(9, held(9, 3)) // which is no member
	f := m.Failure("MonitoredBarrier #3", time.Second)
	if want := []Wait{{1, 3, "Recv #1"}, {2, 3, "Recv #1"}}; f.Rank != 3 || !slices.Equal(f.Missing, []int{1, 2, 3}) || !slices.Equal(f.Waits, want) {
		t.Errorf("got %+v", f)
	}
	for rank := range 4 {
		m.Reported(rank, &WaitReport{Seq: 5})
	}
	if len(m.Ranks) != 0 {
		t.Errorf("%v have not come", m.Ranks)
	}
}

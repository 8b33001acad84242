package hang

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/progress"
)

// idle is a worker without package comm.
func idle(rank int, seconds float64) member {
	return member{rank: rank, idle: time.Duration(seconds * float64(time.Second))}
}

// outside is a rank that answers, and is in no operation.
func outside(rank int, seconds float64) member {
	m := idle(rank, seconds)
	m.status = &progress.Status{Rank: rank}
	return m
}

// inside is a rank that is in an operation, and does not wait.
func inside(rank int, seconds float64) member {
	m := outside(rank, seconds)
	m.status.Operation = true
	return m
}

// stalled is a rank that waits, and does not know for whom.
func stalled(rank int, seconds float64) member {
	m := inside(rank, seconds)
	m.status.Stalled = true
	return m
}

// waiting is a rank that waits for others, one for the next; the last is the suspect.
func waiting(rank int, seconds float64, others ...int) member {
	m := inside(rank, seconds)
	for from := rank; len(others) > 0; others = others[1:] {
		m.status.Waits = append(m.status.Waits, progress.Wait{Rank: from, For: others[0], In: "AllReduce #7"})
		from = others[0]
	}
	m.status.Suspect = &progress.Suspect{Rank: m.status.Waits[len(m.status.Waits)-1].For}
	return m
}

// circling is a rank that waits in a circle.
func circling(rank int, seconds float64, circle ...int) member {
	m := inside(rank, seconds)
	for i, r := range circle {
		m.status.Waits = append(m.status.Waits, progress.Wait{Rank: r, For: circle[(i+1)%len(circle)], In: "Recv #3"})
	}
	return m
}

// placed is a worker without package comm that is at a place.
func placed(rank int, seconds float64, does activity, stack ...string) member {
	m := idle(rank, seconds)
	m.place = place{does: does, stack: strings.Join(stack, "")}
	return m
}

func silent(m member) member { m.silent = true; return m }

func TestSuspect(t *testing.T) {
	const nobody = -1
	for _, c := range []struct {
		name    string
		members []member
		want    int // rank
		because string
	}{
		{"none", nil, nobody, ""},
		{"all make progress", []member{idle(0, 9), outside(1, 9), waiting(2, 9, 0)}, nobody, ""},
		{"one that reports nothing", []member{idle(0, 0), idle(1, 9)}, nobody, ""},
		{"one of one", []member{idle(0, 10)}, 0, ""},
		{"the one that does not wait, whoever has stopped first", []member{placed(0, 10.3, waits), placed(1, 10.1, idles)}, 1, ""},
		{"the one that is elsewhere", []member{placed(0, 10.1, waits, "f"), placed(1, 10.3, waits, "f"), placed(2, 10.2, waits, "g")}, 2, ""},
		{"no one stands out", []member{placed(3, 10, waits), placed(4, 10.2, waits)}, 3,
			"it is one of ranks 3, 4, and where they are does not tell which of them holds up the others"},
		{"another one has just stopped", []member{placed(0, 10, waits), placed(1, 9.9, idles)}, nobody, ""},
		{"another one always seems to have", []member{placed(0, 20, waits), placed(1, 9.9, idles)}, 0, ""},
		{"others make progress", []member{placed(0, 10, waits), placed(1, 0.1, waits)}, 0, ""},
		{"one that would say if it waited", []member{placed(0, 12, idles), outside(1, 10)}, 1, ""},
		{"the one that does not wait", []member{waiting(0, 12, 1), outside(1, 10), waiting(2, 12, 1)}, 1, "ranks 0, 2 wait for it in AllReduce #7"},
		{"it is silent", []member{waiting(0, 12, 1), silent(idle(1, 10))}, 1, "rank 0 waits for it in AllReduce #7"},
		{"all are silent", []member{silent(idle(0, 12)), silent(idle(1, 10))}, 0, "it does not answer gorun"},
		{"those for whom many wait come first", []member{outside(0, 60), outside(1, 11), waiting(2, 11, 1)}, 1, "rank 2 waits for it in AllReduce #7"},
		{"it makes progress", []member{waiting(0, 60, 1), outside(1, 2)}, nobody, ""},
		{"it is on another node", []member{waiting(0, 60, 7), waiting(1, 60, 0, 7)}, nobody, ""},
		{"through another node", []member{waiting(0, 12, 7, 1), outside(1, 11)}, 1, "rank 0 waits for it in AllReduce #7"},
		{"it may be about to learn for whom it waits", []member{stalled(0, 12)}, nobody, ""},
		{"it has had time to learn it", []member{stalled(0, 20)}, 0, ""},
		{"all move many bytes", []member{inside(0, 60), inside(1, 60)}, nobody, ""},
		{"it moves nothing", []member{inside(0, 100), inside(1, 99)}, 0, ""},
		{"another one has stopped for certain", []member{inside(0, 12), outside(1, 10)}, 1, ""},
		{"a circle", []member{circling(0, 11, 0, 1), circling(1, 12, 0, 1)}, 0, "deadlock: rank 0 waits for rank 1 in Recv #3, rank 1 waits for rank 0 in Recv #3"},
		{"a circle of which its lowest rank has not learned yet", []member{waiting(0, 11, 1, 2), circling(1, 11, 1, 2, 0), waiting(2, 11, 0)}, 0,
			"deadlock: rank 0 waits for rank 1 in Recv #3, rank 1 waits for rank 2 in Recv #3, rank 2 waits for rank 0 in Recv #3"},
		{"a circle that has just begun", []member{circling(0, 11, 0, 1), circling(1, 2, 0, 1)}, nobody, ""},
		{"a circle whose lowest rank is elsewhere", []member{circling(4, 11, 2, 4)}, nobody, ""},
		{"one that waits for itself", []member{circling(0, 11, 0)}, 0, "deadlock: rank 0 waits for rank 0 in Recv #3"},
		{"one that waits for a circle", []member{circling(5, 11, 1, 2), circling(1, 11, 1, 2), circling(2, 11, 1, 2)}, 1, "deadlock: rank 1 waits for rank 2 in Recv #3, rank 2 waits for rank 1 in Recv #3"},
	} {
		v, ok := suspect(c.members, 10*time.Second, false)
		got, why := nobody, ""
		if ok {
			got, why = c.members[v.index].rank, because(c.members, v)
		}
		if got != c.want || why != c.because {
			t.Errorf("%s: rank %d (%s), want %d (%s)", c.name, got, why, c.want, c.because)
		}
	}
}

// TestSuspectOfOtherNodes: workers that may wait for one of another node get time, in which that node finds it.
func TestSuspectOfOtherNodes(t *testing.T) {
	const nobody = -1
	for _, c := range []struct {
		name    string
		members []member
		want    int // rank
		because string
	}{
		{"it waits", []member{placed(0, 19, waits)}, nobody, ""},
		{"it has waited for long", []member{placed(0, 20, waits)}, 0, "it may wait for a rank of another node, or for one that reports no progress"},
		{"it does not wait", []member{placed(0, 10, idles)}, 0, ""},
		{"one of two does not wait", []member{placed(0, 10, waits), placed(1, 10, idles)}, 1, ""},
		{"one is elsewhere, and may wait", []member{placed(0, 19, waits, "f"), placed(1, 19, waits, "f"), placed(2, 19, waits, "g")}, nobody, ""},
		{"it was there for long", []member{placed(0, 20, waits, "f"), placed(1, 20, waits, "f"), placed(2, 20, waits, "g")}, 2, ""},
	} {
		v, ok := suspect(c.members, 10*time.Second, true)
		got, why := nobody, ""
		if ok {
			got, why = c.members[v.index].rank, because(c.members, v)
		}
		if got != c.want || why != c.because {
			t.Errorf("%s: rank %d (%s), want %d (%s)", c.name, got, why, c.want, c.because)
		}
	}
}

// TestSuspectOfAny: whatever workers say, who hangs has reported progress, has made none for the timeout, and does not wait for a rank that
// is not in its circle; and one that hangs for certain is found.
func TestSuspectOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 10 * time.Second
		n := rapid.IntRange(0, 6).Draw(t, "workers")
		members := make([]member, n)
		rank := rapid.IntRange(0, n+2)
		certain, soon, others := false, false, rapid.Bool().Draw(t, "other nodes")
		does := rapid.SampledFrom([]activity{waits, runs, idles})
		for i := range members {
			seconds := rapid.Float64Range(0, 30).Draw(t, "idle")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				members[i] = placed(i, seconds, does.Draw(t, "does"), rapid.SampledFrom([]string{"", "f", "g"}).Draw(t, "stack"))
			case 1:
				members[i] = outside(i, seconds)
			case 2:
				members[i] = inside(i, seconds)
			case 3:
				members[i] = waiting(i, seconds, rapid.SliceOfN(rank, 1, 3).Draw(t, "waits")...)
			case 4:
				members[i] = circling(i, seconds, rapid.SliceOfN(rank, 1, 3).Draw(t, "circle")...)
			}
			m := &members[i]
			certain = certain || m.idle >= timeout && (m.isPlain() && (!others || m.idle >= 2*timeout) || m.status != nil && !m.status.Operation)
			soon = soon || m.isPlain() && m.idle >= timeout/2 && m.idle < timeout
		}
		certain = certain && !soon
		v, ok := suspect(members, timeout, others)
		if certain && !ok {
			t.Fatalf("nobody hangs")
		}
		if !ok {
			return
		}
		if m := &members[v.index]; m.idle < timeout || m.waits() && (certain || m.status.Suspect != nil) && !inACircle(members, m.rank) {
			t.Fatalf("rank %d hangs: %+v", m.rank, m.status)
		}
		because(members, v)
	})
}

func inACircle(members []member, rank int) bool {
	for i := range members {
		for _, w := range statusOf(members[i]).Waits {
			if members[i].isCircle() && w.Rank == rank {
				return true
			}
		}
	}
	return false
}

func statusOf(m member) *progress.Status {
	if m.status == nil {
		return &progress.Status{}
	}
	return m.status
}

// TestClock: time counts from the first report, and only as far as it was observed.
func TestClock(t *testing.T) {
	at := func(seconds ...int64) (stamps []time.Time) {
		for _, s := range seconds {
			stamps = append(stamps, time.Unix(s, 0))
		}
		return stamps
	}
	c := newClock(time.Second, at(100, 100, 100))
	want := func(what string, idle ...time.Duration) {
		t.Helper()
		for i, want := range idle {
			if got := c.idle(i); got != want {
				t.Errorf("%s: worker %d has made no progress for %v, want %v", what, i, got, want)
			}
		}
	}
	c.observe(time.Second, at(100, 101, 101))
	want("the first report", 0, 0, 0)
	c.observe(time.Second, at(100, 102, 101))
	want("one goes on", 0, 0, time.Second)
	c.observe(time.Hour, at(100, 103, 101))
	want("all were suspended", 0, 0, 2*time.Second)
	c.observe(-time.Hour, at(100, 90, 101))
	want("the clock was set back", 0, 0, 2*time.Second)
	c.observe(time.Second, []time.Time{{}, {}, {}})
	want("the files cannot be read", 0, time.Second, 3*time.Second)
	c.end(2)
	want("one has ended", 0, time.Second, 0)
	c.observe(time.Second, at(50, 90, 101))
	c.observe(time.Second, at(50, 90, 101))
	want("a late first report", time.Second, 3*time.Second, 0)
}

package cost

import (
	"math/bits"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	most    = 17 // ranks
	noLimit = 1 << 30
	us      = time.Microsecond
)

// by returns the choice of one way.
func by(t testing.TB, op, way string) plan.Choices {
	t.Helper()
	rules, err := choice.Parse(op+"="+way, plan.Ways)
	if err != nil {
		t.Fatal(err)
	}
	return plan.NewChoices(plan.Ways, rules)
}

// timeOf returns the time of op in s, which has to be known.
func timeOf(t failer, s System, c plan.Choices, op string, bytes int) time.Duration {
	t.Helper()
	plans, inPlace := Plans(c, op, len(s.Machines), bytes)
	d, ok := s.Time(plans, inPlace)
	if !ok {
		t.Fatalf("%s of %d bytes by %d ranks has no time", op, bytes, len(s.Machines))
	}
	return d
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// What the literature says: a is the latency of a message, and b the gap of a byte (Hockney), and c is spent on a byte that is combined.
// Most are in Thakur, Rabenseifner and Gropp 2005.
func TestTimesOfTheLiterature(t *testing.T) {
	const (
		a, b, c = 10 * us, 2 * time.Nanosecond, 3 * time.Nanosecond

		anyRanks   = "any number of ranks"
		powerOfTwo = "a power of two of ranks"
		atMost     = "at most, any number of ranks"
	)
	type ns = time.Duration
	toOrFromRoot := func(p, n, _ ns) ns { return max(n/p*c, min(p-1, 1)*a+(p-1)*n/p*b) }
	links := Links{Network: Link{Latency: a, Gap: 2000}, Combine: 3000}
	for _, k := range []struct {
		op, way, holds string
		want           func(p, n, log ns) ns // log is that of p, rounded up
	}{
		{"barrier", "dissemination", anyRanks, func(_, _, log ns) ns { return log * a }},
		{"barrier", "pairwise", anyRanks, func(p, _, _ ns) ns { return min(p-1, 1) * a }},
		{"broadcast", "linear", anyRanks, func(p, n, _ ns) ns { return min(p-1, 1)*a + (p-1)*n*b }},
		{"reduce", "linear", anyRanks, func(p, n, _ ns) ns { return min(p-1, 1)*(a+n*b) + (p-1)*n*c }},
		{"all_reduce", "pairwise", atMost, func(p, n, _ ns) ns { return min(p-1, 1)*a + (p-1)*n*(b+c) }},
		{"all_gather", "pairwise", anyRanks, func(p, n, _ ns) ns { return min(p-1, 1)*a + (p-1)*n/p*b }},
		{"broadcast", "binomial", powerOfTwo, func(_, n, log ns) ns { return log * (a + n*b) }},
		{"broadcast", "binomial", atMost, func(_, n, log ns) ns { return log * (a + n*b) }},
		{"broadcast", "chain", anyRanks, func(p, n, _ ns) ns { return (p - 1) * (a + n*b) }},
		{"reduce", "binomial", powerOfTwo, func(_, n, log ns) ns { return log * (a + n*(b+c)) }},
		{"reduce", "binomial", atMost, func(_, n, log ns) ns { return log * (a + n*(b+c)) }},
		{"broadcast", "scatter", atMost, func(p, n, log ns) ns { return (2*log+1)*a + 3*n*b }},
		{"reduce", "halving", powerOfTwo, func(p, n, log ns) ns { return 2*log*a + 2*(p-1)*n/p*b + (p-1)*n/p*c }}, // Rabenseifner
		{"all_reduce", "doubling", powerOfTwo, func(_, n, log ns) ns { return log * (a + n*(b+c)) }},
		{"all_reduce", "doubling", atMost, func(_, n, log ns) ns { return (log+1)*(a+n*(b+c)) - n*c }},
		{"all_reduce", "halving", powerOfTwo, func(p, n, log ns) ns { return 2*log*a + 2*(p-1)*n/p*b + (p-1)*n/p*c }}, // Rabenseifner
		{"all_reduce", "ring", anyRanks, func(p, n, _ ns) ns { return 2*(p-1)*(a+n/p*b) + (p-1)*n/p*c }},
		{"reduce_scatter", "halving", powerOfTwo, func(p, n, log ns) ns { return log*a + (p-1)*n/p*(b+c) }},
		{"all_gather", "doubling", powerOfTwo, func(p, n, log ns) ns { return log*a + (p-1)*n/p*b }},
		{"all_gather", "bruck", powerOfTwo, func(p, n, log ns) ns { return log*a + (p-1)*n/p*b }},
		{"all_gather", "ring", anyRanks, func(p, n, _ ns) ns { return (p - 1) * (a + n/p*b) }},
		{"gather", "linear", anyRanks, toOrFromRoot},
		{"scatter", "linear", anyRanks, toOrFromRoot},
		{"all_to_all", "pairwise", anyRanks, func(p, n, _ ns) ns { return n/p*c + min(p-1, 1)*a + (p-1)*n/p*b }}, // c for the own block
	} {
		for p := 1; p <= most; p++ {
			if k.holds == powerOfTwo && bits.OnesCount(uint(p)) != 1 {
				continue
			}
			n := p * 1200
			if k.op == "barrier" {
				n = 0
			}
			got := timeOf(t, Apart(links, p, noLimit), by(t, k.op, k.way), k.op, n)
			want := k.want(ns(p), ns(n), ns(bits.Len(uint(p-1))))
			if got > want || got < want && k.holds != atMost {
				t.Errorf("%s by %s, %d bytes, %d ranks: %v, want %v with %s", k.op, k.way, n, p, got, want, k.holds)
			}
		}
	}
}

// A pipeline of k messages of m bytes takes k+P-2 times as long as one, and a latency for each rank.
func TestPipeline(t *testing.T) {
	const chunk, b = 1000, 2 * time.Nanosecond
	for p := 2; p <= most; p++ {
		for k := 1; k < 20; k++ {
			s := Apart(Links{Network: Link{Latency: us, Gap: 2000}}, p, chunk)
			got := timeOf(t, s, by(t, "broadcast", "chain"), "broadcast", k*chunk)
			if want := time.Duration(k+p-2)*chunk*b + time.Duration(p-1)*us; got != want {
				t.Errorf("%d messages, %d ranks: %v, want %v", k, p, got, want)
			}
		}
	}
}

// One message of LogGP takes o + L + o, and n times the gap of the slower of wire and processors.
func TestOneMessage(t *testing.T) {
	for _, c := range []struct {
		link Link
		want time.Duration
	}{
		{Link{}, 0},
		{Link{Latency: 5 * us, Overhead: 2 * us}, 9 * us},
		{Link{Latency: 5 * us, Overhead: 2 * us, Gap: 1000}, 19 * us},
		{Link{Latency: 5 * us, Overhead: 2 * us, Gap: 1000, Copy: 500}, 19 * us},
		{Link{Latency: 5 * us, Overhead: 2 * us, Gap: 1000, Copy: 3000}, 39 * us},
		{Link{Copy: 3000, Wakeup: time.Second}, 30 * us},
	} {
		s := Apart(Links{Network: c.link}, 2, noLimit)
		if got := timeOf(t, s, by(t, "broadcast", "binomial"), "broadcast", 10_000); got != c.want {
			t.Errorf("%+v: %v, want %v", c.link, got, c.want)
		}
		s.Machines, s.Links = []int{0, 0}, Links{Machine: c.link}
		if got := timeOf(t, s, by(t, "broadcast", "binomial"), "broadcast", 10_000); got != c.want {
			t.Errorf("%+v inside a machine: %v, want %v", c.link, got, c.want)
		}
	}
}

// Every way has a time for every number of ranks; and in the time there is room for the bytes that a rank gets.
func TestEveryWayHasATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWay(t)
		p, n := rapid.IntRange(1, most).Draw(t, "ranks"), rapid.IntRange(0, 100_000).Draw(t, "bytes")
		s := drawSystem(t, p)
		plans, inPlace := Plans(forced(t, l), l.Op, p, n)
		d, ok := s.Time(plans, inPlace)
		if !ok || d < 0 {
			t.Fatalf("%s by %s, %d bytes, %d ranks: %v, %t", l.Op, l.Way, n, p, d, ok)
		}
		for r, plan := range plans {
			bytes := 0
			for _, step := range plan {
				if step.From >= 0 && s.Machines[step.From] != s.Machines[r] {
					bytes += step.Recv.Len()
				}
			}
			if least := ofBytes(bytes, s.gap(s.Machines[r])).toDuration(); d < least {
				t.Fatalf("%s by %s, %d bytes, %d ranks: %v, and rank %d gets %d bytes in %v", l.Op, l.Way, n, p, d, r, bytes, least)
			}
		}
	})
}

func forced(t *rapid.T, l choice.Line) plan.Choices {
	rules, err := choice.Parse(l.Op+"="+l.Way, plan.Ways)
	if err != nil {
		t.Fatal(err)
	}
	return plan.NewChoices(plan.Ways, rules)
}

func drawLink(t *rapid.T) Link {
	delay := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 1e6).Draw(t, "ns")) })
	return Link{
		delay.Draw(t, "latency"), delay.Draw(t, "overhead"), delay.Draw(t, "wakeup"),
		rapid.IntRange(0, 1e6).Draw(t, "gap"), rapid.IntRange(0, 1e6).Draw(t, "copy"),
	}
}

func drawSystem(t *rapid.T, ranks int) System {
	s := System{Links: Links{drawLink(t), drawLink(t), rapid.IntRange(0, 1e6).Draw(t, "combine")}, Chunk: rapid.IntRange(1000, 1e6).Draw(t, "chunk")}
	kernels := rapid.IntRange(1, 4).Draw(t, "kernels")
	for range ranks {
		k := rapid.IntRange(0, kernels-1).Draw(t, "kernel")
		s.Kernels, s.Machines = append(s.Kernels, k), append(s.Machines, k)
	}
	uneven := rapid.Bool().Draw(t, "uneven")
	for range kernels {
		s.Processors = append(s.Processors, rapid.IntRange(0, 3).Draw(t, "processors"))
		if uneven {
			s.Gaps = append(s.Gaps, rapid.IntRange(0, 1e6).Draw(t, "gap"))
		}
	}
	return s
}

// With constants that are twice as large, everything takes twice as long.
func TestTimesScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawWay(t)
		p, n := rapid.IntRange(1, most).Draw(t, "ranks"), rapid.IntRange(0, 100_000).Draw(t, "bytes")
		s := drawSystem(t, p)
		once := timeOf(t, s, forced(t, l), l.Op, n)
		s.Links = Links{twice(s.Network), twice(s.Machine), 2 * s.Combine}
		for m := range s.Gaps {
			s.Gaps[m] *= 2
		}
		if again := timeOf(t, s, forced(t, l), l.Op, n); again > 2*once || again < 2*once-2 { // they are rounded up
			t.Fatalf("%s by %s, %d bytes, %d ranks: %v, and %v with constants twice as large", l.Op, l.Way, n, p, once, again)
		}
	})
}

func twice(l Link) Link {
	return Link{2 * l.Latency, 2 * l.Overhead, 2 * l.Wakeup, 2 * l.Gap, 2 * l.Copy}
}

// Nothing takes less time if messages cost more: by any way as long as no machine receives from two at a time, because which of them
// comes first may change then.
func TestTimesGrow(t *testing.T) {
	oneSender := map[string]bool{"binomial": true, "chain": true, "pipeline": true, "ring": true, "dissemination": true}
	rapid.Check(t, func(t *rapid.T) {
		l := drawWay(t)
		p, n := rapid.IntRange(1, most).Draw(t, "ranks"), rapid.IntRange(0, 10_000).Draw(t, "bytes")
		plans, inPlace := Plans(forced(t, l), l.Op, p, n)
		links := Links{Network: drawLink(t), Combine: rapid.IntRange(0, 1e6).Draw(t, "combine")}
		if !oneSender[l.Way] || l.Op == "reduce" || l.Op == "all_reduce" && l.Way == "chain" {
			links.Network.Gap = 0
		}
		last := time.Duration(0)
		for _, more := range []func(){
			func() {}, func() { links.Network.Latency += us }, func() { links.Network.Overhead += us }, func() { links.Network.Copy += 1000 },
			func() { links.Combine += 1000 }, func() { plans = longer(plans) }, func() { links.Network.Gap *= 2 },
		} {
			more()
			s := Apart(links, p, noLimit)
			d, ok := s.Time(plans, inPlace)
			if !ok || d < last {
				t.Fatalf("%s by %s, %d bytes, %d ranks: %v, and %v with more, %+v", l.Op, l.Way, n, p, last, d, links)
			}
			last = d
		}
	})
}

func drawWay(t *rapid.T) choice.Line {
	return rapid.SampledFrom(plan.Ways).Filter(func(l choice.Line) bool { return l.Op != "nodes" }).Draw(t, "way")
}

// longer returns plans with three bytes for each.
func longer(plans []plan.Plan) []plan.Plan {
	all := make([]plan.Plan, len(plans))
	for r, p := range plans {
		for _, s := range p {
			s.Send, s.Recv = plan.Range{Lo: 3 * s.Send.Lo, Hi: 3 * s.Send.Hi}, plan.Range{Lo: 3 * s.Recv.Lo, Hi: 3 * s.Recv.Hi}
			all[r] = append(all[r], s)
		}
	}
	return all
}

func TestNoTime(t *testing.T) {
	s := Apart(Default(), 2, 1000)
	for name, plans := range map[string][]plan.Plan{
		"too long":        {{{To: 1, Send: plan.Range{Hi: noLimit}, From: plan.None}}, {{To: plan.None, From: 0, Recv: plan.Range{Hi: noLimit}}}},
		"one waits":       {{}, {{To: plan.None, From: 0}}},
		"too few":         {{}},
		"none":            nil,
		"longer than int": {{{To: 1, Send: plan.Range{Hi: 1<<63 - 1}, From: 1, Recv: plan.Range{Hi: 1<<63 - 1}}}, {}},
	} {
		if d, ok := s.Time(plans, true); ok {
			t.Errorf("%s: %v", name, d)
		}
	}
	for name, c := range map[string]struct {
		op           string
		ranks, bytes int
	}{"no plan": {"nodes", 2, 8}, "too many ranks": {"barrier", 1 << 40, 0}, "too many steps": {"all_gather", 2000, 1 << 30}, "negative": {"broadcast", 2, -1}} {
		if plans, _ := Plans(plan.NewChoices(plan.Ways, nil), c.op, c.ranks, c.bytes); plans != nil {
			t.Errorf("%s: %d plans", name, len(plans))
		}
	}
}

func TestParse(t *testing.T) {
	d := Default()
	faster, other := d, d
	faster.Network.Latency, faster.Network.Gap = 50*us, 80
	other.Machine.Overhead, other.Machine.Wakeup, other.Machine.Copy, other.Network.Gap = us, 0, 16000, 8
	for text, want := range map[string]Links{
		"": d, " ; ": d,
		"network=latency:50us,rate:100Gbit":                                      faster,
		"machine = overhead:1us, wakeup:0s ,copy:500Mbit; network=rate:1000Gbit": other,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"network":               `link "network": want network=latency:`,
		"net=latency:1us":       `there is no link "net"`,
		"network=speed:1":       `there is no "speed"`,
		"network=latency":       `"": want a duration`,
		"network=latency:2s":    `"2s": want a duration`,
		"network=latency:-1us":  `"-1us": want a duration`,
		"network=rate:10":       `"10": want a rate`,
		"network=rate:0Gbit":    `"0Gbit": want a rate`,
		"network=rate:NaNGbit":  `"NaNGbit": want a rate`,
		"machine=copy:1e9Gbit":  `"1e9Gbit": want a rate`,
		"machine=overhead:1us,": `there is no ""`,
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || got != (Links{}) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("network=latency:50us,rate:100Gbit; machine=wakeup:1us")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(text)
		if err != nil {
			return
		}
		for _, k := range []Link{l.Network, l.Machine} {
			if k.Latency < 0 || k.Overhead < 0 || k.Wakeup < 0 || max(k.Latency, k.Overhead, k.Wakeup) > time.Second || k.Gap < 0 || k.Copy < 0 || max(k.Gap, k.Copy) > 8e6 {
				t.Errorf("%q: %+v", text, l)
			}
		}
	})
}

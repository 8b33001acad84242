package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A network consists of machines, each with a link to a switch. There may be two switches.
type network struct {
	Machines, Ranks int           // ranks of each machine
	Rate            float64       // of a link in each direction, in bits a second
	Latency         time.Duration // from one machine to another; 0: that of this machine's kernel
	Core            float64       // rate of the link between two switches, each with half of the machines; 0: there is one switch
	SlowLink        float64       // rate of the last machine's link; 0: as the others
	SlowMachine     float64       // processors that the last machine's ranks share, as in a container with a CPU limit; 0: no limit
}

// parseNetwork takes MACHINESxRANKS@RATE, such as 4x2@10Gbit, and what follows it: +LATENCY, such as +5ms, +core=RATE, +slow-link=RATE, and
// +slow-machine=PROCESSORS.
func parseNetwork(text string) (n network, err error) {
	parts := strings.Split(text, "+")
	shape, rate, _ := strings.Cut(parts[0], "@")
	machines, ranks, _ := strings.Cut(shape, "x")
	errs := []error{positive(machines, &n.Machines, strconv.Atoi), positive(ranks, &n.Ranks, strconv.Atoi), positive(rate, &n.Rate, parseRate)}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "core":
			err = positive(value, &n.Core, parseRate)
		case "slow-link":
			err = positive(value, &n.SlowLink, parseRate)
		case "slow-machine":
			err = positive(value, &n.SlowMachine, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
		default:
			err = positive(part, &n.Latency, time.ParseDuration)
		}
		errs = append(errs, err)
	}
	if n.Machines == 1 || n.Core > 0 && n.Machines%2 > 0 {
		errs = append(errs, fmt.Errorf("%d machines: want at least 2, and an even number if there is a core", n.Machines))
	}
	if err := errors.Join(errs...); err != nil {
		return n, fmt.Errorf("network %q: want MACHINESxRANKS@RATE, such as 4x2@10Gbit, or with +LATENCY, +core=RATE, +slow-link=RATE or +slow-machine=PROCESSORS: %w", text, err)
	}
	return n, nil
}

// positive sets value to what text says. It is an error if that is not more than 0.
func positive[T int | float64 | time.Duration](text string, value *T, parse func(string) (T, error)) (err error) {
	if *value, err = parse(text); err == nil && (*value <= 0 || math.IsInf(float64(*value), 0)) {
		err = fmt.Errorf("%q: want more than 0", text)
	}
	return err
}

func parseRate(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "Gbit")
	if !ok {
		return 0, fmt.Errorf("rate %q: want one in Gbit", text)
	}
	rate, err := strconv.ParseFloat(digits, 64)
	return rate * 1e9, err
}

func (n network) String() string {
	ranks := "one rank"
	if n.Ranks > 1 {
		ranks = fmt.Sprint(n.Ranks, " ranks")
	}
	text := fmt.Sprintf("%d machines with %s each, %g Gbit/s", n.Machines, ranks, n.Rate/1e9)
	if n.Latency > 0 {
		text += fmt.Sprintf(", %v from one to another", n.Latency)
	}
	if n.Core > 0 {
		text += fmt.Sprintf(", at two switches with %g Gbit/s between them", n.Core/1e9)
	}
	if n.SlowLink > 0 {
		text += fmt.Sprintf(", but the last one's link %g Gbit/s", n.SlowLink/1e9)
	}
	if n.SlowMachine > 0 {
		text += fmt.Sprintf(", the last one with %g processors", n.SlowMachine)
	}
	return text
}

// overhead is how many bytes TCP and Ethernet need for each byte that they carry, with packets of 1500 bytes.
const overhead = 1514.0 / 1448

// bound is the least time, in microseconds, in which the links can carry what an operation has to move between machines, by the best
// known bound: in a reduction over N machines, a link carries (N-1)/N of the vector into each machine, and as much out of it. The link
// between two switches counts as if each half were one machine. It is 0 if there is no bound.
func (n network) bound(c cell) float64 {
	bytes, others, ranks := float64(c.Bytes), float64(n.Machines-1), float64(n.Ranks)
	all, slowest := float64(n.Machines)*n.Rate, n.Rate // rates of the links
	if n.SlowLink > 0 {
		all, slowest = others*n.Rate+n.SlowLink, n.SlowLink
	}
	core := n.Core
	if core == 0 {
		core = math.Inf(1)
	}
	var times []float64
	switch c.Op {
	case "all_reduce", "buckets": // the slowest link carries the vector out and in again, and all links carry what a ring sends
		times = []float64{bytes / slowest, 2 * others * bytes / all, bytes / core}
	case "all_gather", "reduce_scatter":
		part := others / float64(n.Machines)
		times = []float64{part * bytes / slowest, bytes / 2 / core}
	case "all_to_all":
		part := others / float64(n.Machines)
		times = []float64{part * bytes * ranks / slowest, bytes * ranks * float64(n.Machines) / 4 / core}
	case "broadcast", "reduce":
		times = []float64{bytes / slowest, bytes / core}
	case "sendrecv": // between the first two ranks
		switch {
		case n.Ranks > 1:
			return 0
		case n.Machines == 2:
			times = []float64{bytes / slowest, bytes / core}
		default:
			times = []float64{bytes / n.Rate}
		}
	case "barrier":
		return 0
	}
	return slices.Max(times) * overhead * 8 * 1e6
}

// A networkResult is what was measured on a network.
type networkResult struct {
	network
	samples samples
}

const (
	oursBetween = "comm"
	theLink     = "the link"
)

var peersBetween = []string{"Open MPI", "Open MPI han"}

// printNetwork has a row for each operation and a column for each size. A cell has the time of the best peer by that of comm, and from
// 256 KiB also which part of the link's rate comm and the peer reach.
func (r networkResult) print(w io.Writer, ops []string, sizes []int) {
	head := []string{""}
	for _, s := range sizes {
		head = append(head, size(s))
	}
	rows := [][]string{head}
	for _, op := range ops {
		row := []string{op}
		for _, bytes := range sizes {
			c := cell{Op: op, Ranks: r.Machines * r.Ranks, Bytes: bytes, State: "hot"}
			if op == "barrier" {
				c.Bytes = 0
			}
			_, peer := r.samples.best(peersBetween, c)
			ours := r.samples.time(oursBetween, c)
			text := fmt.Sprintf("%s (%s / %s us)", times(peer/ours), microseconds(peer), microseconds(ours))
			if b := r.bound(c); bytes >= 256<<10 && b > 0 {
				text = fmt.Sprintf("%s (%s / %s)", times(peer/ours), share(b/ours), share(b/peer))
			}
			row = append(row, text)
			if op == "barrier" {
				break
			}
		}
		rows = append(rows, row)
	}
	printTable(w, rows)
}

// chart shows times beside the least time that the link allows.
func (r networkResult) chart(o options) string {
	all := maps.Clone(r.samples)
	all[theLink] = make(map[cell][]float64)
	for c := range r.samples[oursBetween] {
		if b := r.bound(c); b > 0 {
			all[theLink][c] = []float64{b}
		}
	}
	page := report{options: o, Figures: all.figures(), where: r.String()}
	for _, name := range []string{oursBetween, peersBetween[0], peersBetween[1], theLink} {
		page.Contenders = append(page.Contenders, contender{Name: name})
	}
	return page.chart()
}

func share(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]network{
		"4x2@2.5Gbit":                    {Machines: 4, Ranks: 2, Rate: 2.5e9},
		"8x1@1Gbit+5ms":                  {Machines: 8, Ranks: 1, Rate: 1e9, Latency: 5 * time.Millisecond},
		"8x1@1Gbit+core=2Gbit":           {Machines: 8, Ranks: 1, Rate: 1e9, Core: 2e9},
		"4x1@1Gbit+slow-link=0.25Gbit":   {Machines: 4, Ranks: 1, Rate: 1e9, SlowLink: 0.25e9},
		"4x1@1Gbit+1ms+slow-machine=0.5": {Machines: 4, Ranks: 1, Rate: 1e9, Latency: time.Millisecond, SlowMachine: 0.5},
	} {
		if n, err := parseNetwork(text); err != nil || n != want {
			t.Errorf("%q: %+v, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "4x1@1Gbit+", "4x1@1Gbit+5", "4x1@1Gbit+-1ms", "4@1Gbit", "4x2", "1x1@1Gbit", "4x0@1Gbit", "4x1@0Gbit", "4x1@1", "ax1@1Gbit", "4x1@-1Gbit",
		"4x1@1Gbit+core", "4x1@1Gbit+core=1", "4x1@1Gbit+slow-link=0Gbit", "4x1@1Gbit+slow-machine=-1", "4x1@1Gbit+fast=1", "4x1@InfGbit", "3x1@1Gbit+core=1Gbit"} {
		if n, err := parseNetwork(text); err == nil {
			t.Errorf("%q is %v", text, n)
		}
	}
}

// TestBound compares with bounds that were worked out by hand.
func TestBound(t *testing.T) {
	n := network{Machines: 4, Ranks: 2, Rate: 8e6} // a byte takes a microsecond
	want := map[string]float64{"all_reduce": 1500, "reduce_scatter": 750, "all_gather": 750, "broadcast": 1000, "reduce": 1000, "all_to_all": 1500, "buckets": 1500, "sendrecv": 0, "barrier": 0}
	for op, us := range want {
		if got := n.bound(cell{Op: op, Bytes: 1000}) / overhead; math.Abs(got-us) > 1e-6 {
			t.Errorf("%s: %g, want %g", op, got, us)
		}
	}
	core, slow := n, n
	core.Core, slow.SlowLink = 4e6, 2e6 // a byte takes 2 and 4 microseconds
	for op, us := range map[string]float64{"all_reduce": 2000, "reduce_scatter": 1000, "broadcast": 2000, "all_to_all": 4000} {
		if got := core.bound(cell{Op: op, Bytes: 1000}) / overhead; math.Abs(got-us) > 1e-6 {
			t.Errorf("%s between two switches: %g, want %g", op, got, us)
		}
	}
	for op, us := range map[string]float64{"all_reduce": 4000, "reduce_scatter": 3000, "broadcast": 4000} {
		if got := slow.bound(cell{Op: op, Bytes: 1000}) / overhead; math.Abs(got-us) > 1e-6 {
			t.Errorf("%s with a slow link: %g, want %g", op, got, us)
		}
	}
	slow.SlowLink = 7e6 // it hardly matters now
	if got, want := slow.bound(cell{Op: "all_reduce", Bytes: 1000})/overhead, 2*3*8000/31.; math.Abs(got-want) > 1e-6 {
		t.Errorf("with a link that is a little slower: %g, want %g", got, want)
	}
	for n, us := range map[network]float64{
		{Machines: 2, Ranks: 1, Rate: 8e6}:                1000,
		{Machines: 2, Ranks: 1, Rate: 8e6, SlowLink: 4e6}: 2000,
		{Machines: 2, Ranks: 1, Rate: 8e6, Core: 2e6}:     4000,
		{Machines: 4, Ranks: 1, Rate: 8e6, SlowLink: 4e6}: 1000,
	} {
		if got := n.bound(cell{Op: "sendrecv", Bytes: 1000}) / overhead; math.Abs(got-us) > 1e-6 {
			t.Errorf("sendrecv with %v: %g, want %g", n, got, us)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(allOps)), slices.Sorted(slices.Values(keys(want)))) {
		t.Error("some operations have no case here")
	}
}

// TestNetworkChart: the chart names everybody who was measured, and the link.
func TestNetworkChart(t *testing.T) {
	s := make(samples)
	for _, name := range append([]string{oursBetween}, peersBetween...) {
		s.add(name, cell{Op: "all_reduce", Ranks: 2, Bytes: 1 << 20, State: "hot"}, 9000)
	}
	o, err := parseFlags([]string{"-ops=all_reduce", "-ranks=2", "-sizes=1M", "-dirty=no"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	svg := networkResult{network{Machines: 2, Ranks: 1, Rate: 1e9}, s}.chart(o)
	for _, want := range []string{"comm", "Open MPI", "Open MPI han", "the link"} {
		if !strings.Contains(svg, ">"+want+"<") || strings.Count(svg, "<circle") != 4 {
			t.Errorf("no %s, or other points than 4: %s", want, svg)
		}
	}
}

func keys(m map[string]float64) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

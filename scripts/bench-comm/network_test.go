package main

import (
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

// A network is machines that links of one rate join to a switch.
type network struct {
	Machines, Ranks int           // ranks of each machine
	Rate            float64       // of a link in each direction, in bits a second
	Latency         time.Duration // from one machine to another; 0: that of this machine's kernel
}

// parseNetwork takes MACHINESxRANKS@RATE or MACHINESxRANKS@RATE+LATENCY, such as 4x2@10Gbit or 8x1@1Gbit+5ms.
func parseNetwork(text string) (n network, err error) {
	text, latency, delayed := strings.Cut(text, "+")
	shape, rate, ok := strings.Cut(text, "@")
	machines, ranks, also := strings.Cut(shape, "x")
	digits, gbit := strings.CutSuffix(rate, "Gbit")
	if ok && also && gbit {
		var failed [4]error
		n.Machines, failed[0] = strconv.Atoi(machines)
		n.Ranks, failed[1] = strconv.Atoi(ranks)
		n.Rate, failed[2] = strconv.ParseFloat(digits, 64)
		n.Rate *= 1e9
		if delayed {
			n.Latency, failed[3] = time.ParseDuration(latency)
		}
		ok = failed == [4]error{} && n.Latency >= 0
	}
	if !ok || !gbit || n.Machines < 2 || n.Ranks < 1 || n.Rate <= 0 {
		return n, fmt.Errorf("network %q: want MACHINESxRANKS@RATE, such as 4x2@10Gbit, or with +LATENCY", text)
	}
	return n, nil
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
	return text
}

// overhead is how many bytes TCP and Ethernet need for each byte that they carry, with packets of 1500 bytes.
const overhead = 1514.0 / 1448

// bound is the least time, in microseconds, in which the links can carry what an operation has to move between machines, by the best
// known bound: in a reduction over N machines, a link carries (N-1)/N of the vector into each machine, and as much out of it. It is 0 if
// there is no bound.
func (n network) bound(c cell) float64 {
	others, bytes := float64(n.Machines-1)/float64(n.Machines), float64(c.Bytes)
	switch c.Op {
	case "all_reduce", "buckets":
		bytes *= 2 * others
	case "all_gather", "reduce_scatter":
		bytes *= others
	case "all_to_all":
		bytes *= others * float64(n.Ranks)
	case "barrier":
		return 0
	}
	return bytes * overhead * 8 / n.Rate * 1e6
}

// A networkResult is what was measured on a network.
type networkResult struct {
	network
	samples samples
}

const (
	oursBetween   = "comm"
	limitsBetween = "limit Go"
	theLink       = "the link"
)

var peersBetween = []string{"Open MPI", "Open MPI han"}

// printNetwork has a row for each operation and a column for each size. A cell has the time of the best peer by that of comm, and from
// 256 KiB also which part of the link's rate comm, the peer and raw sockets reach.
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
				text = fmt.Sprintf("%s (%s / %s / %s)", times(peer/ours), share(b/ours), share(b/peer), share(b/r.samples.time(limitsBetween, c)))
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
	page := report{options: o, Figures: all.figures(nil), where: r.String()}
	for _, name := range []string{oursBetween, peersBetween[0], peersBetween[1], limitsBetween, theLink} {
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
	if n, err := parseNetwork("4x2@2.5Gbit"); err != nil || n != (network{4, 2, 2.5e9, 0}) {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := parseNetwork("8x1@1Gbit+5ms"); err != nil || n != (network{8, 1, 1e9, 5 * time.Millisecond}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, text := range []string{"", "4x1@1Gbit+", "4x1@1Gbit+5", "4x1@1Gbit+-1ms", "4@1Gbit", "4x2", "1x1@1Gbit", "4x0@1Gbit", "4x1@0Gbit", "4x1@1", "ax1@1Gbit", "4x1@-1Gbit"} {
		if n, err := parseNetwork(text); err == nil {
			t.Errorf("%q is %v", text, n)
		}
	}
}

// TestBound compares with bounds that were worked out by hand.
func TestBound(t *testing.T) {
	n := network{Machines: 4, Ranks: 2, Rate: 8e6} // a byte takes a microsecond
	want := map[string]float64{"all_reduce": 1500, "reduce_scatter": 750, "all_gather": 750, "broadcast": 1000, "reduce": 1000, "all_to_all": 1500, "buckets": 1500, "sendrecv": 1000, "barrier": 0}
	for op, us := range want {
		if got := n.bound(cell{Op: op, Bytes: 1000}) / overhead; math.Abs(got-us) > 1e-6 {
			t.Errorf("%s: %g, want %g", op, got, us)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(allOps)), slices.Sorted(slices.Values(keys(want)))) {
		t.Error("some operations have no case here")
	}
}

// TestNetworkChart: the chart names everybody who was measured, and the link.
func TestNetworkChart(t *testing.T) {
	s := make(samples)
	for _, name := range append([]string{oursBetween, limitsBetween}, peersBetween...) {
		s.add(name, cell{Op: "all_reduce", Ranks: 2, Bytes: 1 << 20, State: "hot"}, 9000)
	}
	o, err := parseFlags([]string{"-ops=all_reduce", "-ranks=2", "-sizes=1M", "-dirty=no"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	svg := networkResult{network{2, 1, 1e9, 0}, s}.chart(o)
	for _, want := range []string{"comm", "limit Go", "Open MPI", "Open MPI han", "the link"} {
		if !strings.Contains(svg, ">"+want+"<") || strings.Count(svg, "<circle") != 5 {
			t.Errorf("no %s, or other points than 5: %s", want, svg)
		}
	}
}

func keys(m map[string]float64) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gorun/gorun/comm"
)

// tuneRounds is how often each algorithm is measured. The best time counts.
const tuneRounds = 3

// tune measures each algorithm of an operation, and prints the rules for GORUN_COMM_TUNE with which groups of this size use the
// fastest. Each algorithm gets a group of its own.
func (w *worker) tune(members []rankInfo) error {
	g, c := w.meter.g, w.meter.c
	w.printer.start(members)
	rules := 0
	for _, name := range c.Operations {
		ways := g.Ways(name)
		if len(ways) < 2 {
			continue
		}
		e := c.experimentsOf(operationNamed(name), g.Size())[0]
		t := newTiming(e, ways, slices.Collect(c.Sizes.of(e.unit(g.Size()))))
		for range tuneRounds {
			for k, way := range ways {
				if err := w.time(e, name+"="+way, t.sizes, t.times[k]); err != nil {
					return err
				}
			}
		}
		t.print(&w.printer)
		w.printer.line("%s@%d=%s", name, g.Size(), t.rule())
		rules++
	}
	if rules == 0 {
		return usagef("nothing to tune: comm has only one algorithm for %s here; to tune what machines send to each other, run one rank on each (--nproc-per-node 1)",
			strings.Join(c.Operations, ", "))
	}
	return w.printer.err
}

// time lowers times to those of e in a group with that tuning.
func (w *worker) time(e experiment, rules string, sizes []int64, times []float64) error {
	tuning, err := comm.ParseTuning(rules)
	if err != nil {
		return err
	}
	group, err := comm.NewGroup(w.meter.ctx, w.meter.g, w.meter.g.Ranks(), comm.WithTuning(tuning))
	if err != nil {
		return err
	}
	defer func() { _ = group.Close() }()
	m := w.meter
	m.g = group
	call, free, err := e.typ.caller(m.ctx, group, e, int(sizes[len(sizes)-1]/e.typ.size))
	if err != nil {
		return err
	}
	for i, size := range sizes {
		took, err := m.measure(call(int(size/e.unit(group.Size())), !e.out))
		if err != nil {
			return err
		}
		times[i] = min(times[i], took.mean)
	}
	if err := free(); err != nil {
		return err
	}
	return comm.Barrier(m.ctx, group) // nobody needs this rank any more
}

// A timing holds the times of the algorithms of an operation.
type timing struct {
	name  string
	ways  []string
	sizes []int64
	times [][]float64 // of every way, in seconds, by size
}

func newTiming(e experiment, ways []string, sizes []int64) *timing {
	t := &timing{name: e.name, ways: ways, sizes: sizes}
	for range ways {
		t.times = append(t.times, slices.Repeat([]float64{math.Inf(1)}, len(sizes)))
	}
	return t
}

func (t *timing) print(r *printer) {
	r.line("#\n# %s, microseconds", t.name)
	head := fmt.Sprintf("#%11s", "size")
	for _, way := range t.ways {
		head += fmt.Sprintf(" %13s", way)
	}
	r.line("%s", head)
	for i, size := range t.sizes {
		line := fmt.Sprintf("#%11d", size)
		for _, times := range t.times {
			line += fmt.Sprintf(" %13.2f", times[i]*1e6)
		}
		r.line("%s", line)
	}
}

// rule returns the algorithms, each with the largest size that it is used for.
func (t *timing) rule() string {
	var parts []string
	last := 0
	for k, end := range t.ends() {
		switch {
		case end == last:
			continue
		case end < len(t.sizes):
			parts = append(parts, fmt.Sprintf("%s:%d", t.ways[k], t.sizes[end-1]))
		default:
			parts = append(parts, t.ways[k])
		}
		last = end
	}
	return strings.Join(parts, ",")
}

// ends returns, for each algorithm, how many sizes it and the algorithms before it are used for. The algorithms are in the
// order of the lengths that they suit. Of all ways to divide the sizes among them, ends returns the one with the smallest
// product of times.
func (t *timing) ends() []int {
	n := len(t.sizes)
	least := slices.Repeat([]float64{math.Inf(1)}, n+1) // of so many sizes, by the ways so far
	least[0] = 0
	from := make([][]int, len(t.ways))
	for k, times := range t.times {
		sums := make([]float64, n+1)
		for i, seconds := range times {
			sums[i+1] = sums[i] + math.Log(max(seconds, 1e-9))
		}
		next := slices.Repeat([]float64{math.Inf(1)}, n+1)
		from[k] = make([]int, n+1)
		for i := range next {
			for j := range i + 1 {
				if cost := least[j] + sums[i] - sums[j]; cost < next[i] {
					next[i], from[k][i] = cost, j
				}
			}
		}
		least = next
	}
	ends := make([]int, len(t.ways))
	end := n
	for k := len(t.ways) - 1; k >= 0; k-- {
		ends[k] = end
		end = from[k][end]
	}
	return ends
}

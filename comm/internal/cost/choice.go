package cost

import (
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	// Ways are compared from shortest bytes of a block to longest bytes of a whole buffer. Outside these, the way of the nearest length stays.
	shortest, longest = 8, 32 << 20
	// mostCompute is about the most chunks that are simulated, so that Choice takes less than a second of a processor.
	mostCompute = 1 << 20
	// fineness: the length from which another way is faster is found to within one part in so many.
	fineness = 32
	// clearly is how much faster than the table's way another one must be to replace it, in percent.
	clearly = 5
)

// Choice returns by which ways op takes the least predicted time if its ranks are on so many rails, as those of [OnRails]. The table's way
// stays where no other is clearly faster, and where it has too many messages to simulate, unless another way was clearly faster for fewer bytes:
// then that one stays. Choice returns nil if the table's ways stay for all lengths.
func (s *System) Choice(table choice.Table, op string, rails int) choice.Choice {
	size := len(s.Machines) / rails
	m := comparison{System: s, op: op, size: size, rails: rails, table: plan.NewChoices(table, nil), ways: table.Free(op), wire: map[string]moment{}}
	m.table.Chain = s.Chain(size)
	if size < 2 || len(m.ways) < 2 || size > longest/shortest {
		return nil
	}
	lengths := m.lengths()
	m.most = mostCompute / (len(lengths) * len(m.ways))
	return m.choice(lengths)
}

// A comparison compares the ways of an operation.
type comparison struct {
	*System
	op          string
	size, rails int // ranks of a rail, and rails
	table       plan.Choices
	ways        []string
	most        int               // chunks that are simulated for one way and length
	wire        map[string]moment // by way: how long a KiB of the buffer occupies the busiest link, as far as is known
}

// lengths returns lengths that double, and those at which the table's way changes.
func (m *comparison) lengths() []int {
	var lengths []int
	first := shortest * m.size
	if m.op == "all_reduce" || m.op == "reduce" || m.op == "broadcast" { // the buffer is one block
		first = shortest
	}
	for n := shortest; n <= longest; n *= 2 {
		if n >= first {
			lengths = append(lengths, n)
		}
	}
	for _, w := range m.table.Choice(m.op, m.size) {
		if w.UpTo > lengths[0] && w.UpTo < longest {
			lengths = append(lengths, w.UpTo, w.UpTo+1)
		}
	}
	slices.Sort(lengths)
	return slices.Compact(lengths)
}

// A pick is the way for some length.
type pick struct {
	way      string
	replaces bool // it is not the table's
}

// choice returns the ways of the least time.
func (m *comparison) choice(lengths []int) choice.Choice {
	var c choice.Choice
	last := m.fastest(lengths[0], pick{})
	replaces := last.replaces
	for i, n := range lengths[1:] {
		next := m.fastest(n, last)
		if next.way != last.way {
			c = append(c, choice.Way{Name: last.way, UpTo: m.limit(lengths[i], n, last)})
		}
		last, replaces = next, replaces || next.replaces
	}
	if !replaces {
		return nil
	}
	most := longest
	if last.replaces {
		most = m.beyond(last.way)
		c = append(c, choice.Way{Name: last.way, UpTo: most})
	}
	for _, w := range m.table.Choice(m.op, m.size) {
		if w.UpTo > most || !last.replaces && w.UpTo == most {
			c = append(c, w)
		}
	}
	return c
}

// beyond returns up to how many bytes a way that has replaced the table's is fastest, if that is more than longest. From there on, each way takes time
// in proportion to what the busiest link carries.
func (m *comparison) beyond(way string) int {
	table := m.ofTable(longest + 1)
	if !m.isLighter(table, way) {
		return choice.Any
	}
	mine, knowsMine := m.time(way, longest)
	others, knowsOthers := m.time(table, longest)
	if !knowsMine || !knowsOthers {
		return longest
	}
	return longest + int(max(of(others-mine), 0)/(m.wire[way]-m.wire[table]))<<10
}

// limit returns up to how many bytes p is the fastest. It is for so many bytes, and is not for so many others.
func (m *comparison) limit(is, isNot int, p pick) int {
	for least := max(is/fineness, 1); isNot-is > least; {
		middle := (is + isNot) / 2
		if m.fastest(middle, p).way == p.way {
			is = middle
		} else {
			isNot = middle
		}
	}
	return is
}

func (m *comparison) ofTable(bytes int) string { return m.table.Pick(m.op, m.size, bytes) }

// fastest returns the way for so many bytes. last is that for fewer bytes: it stays if no other is clearly faster. It also stays if it or the table's
// way has too many messages to simulate, provided that it has replaced the table's way before, and is lighter. Otherwise, a table's way that cannot
// be simulated stays.
func (m *comparison) fastest(bytes int, last pick) pick {
	times := map[string]time.Duration{}
	way, table := "", m.ofTable(bytes)
	for _, w := range m.ways {
		if d, known := m.time(w, bytes); known {
			times[w] = d
			if best, any := times[way]; !any || d < best {
				way = w
			}
		}
	}
	best := times[way]
	for _, w := range []string{table, last.way} {
		if d, known := times[w]; known && d <= best+best*clearly/100 {
			way = w
			break
		}
	}
	_, knowsTable := times[table]
	_, knowsLast := times[last.way]
	switch {
	case last.replaces && (!knowsLast || !knowsTable) && m.isLighter(last.way, table) && plan.Fits(m.op, last.way, m.size, bytes):
		way = last.way
	case !knowsTable:
		way = table
	}
	return pick{way, way != table}
}

// time returns the time of a way, if that has no more messages than may be simulated.
func (m *comparison) time(way string, bytes int) (time.Duration, bool) {
	if !plan.Fits(m.op, way, m.size, bytes) {
		return 0, false
	}
	c := m.table
	c.Chooser = c.By(m.op, way, m.size)
	plans, inPlace := plansUpTo(m.most/m.rails, c, m.op, m.size, bytes)
	plans = OnRails(plans, m.rails)
	d, known := m.timeUpTo(m.most, plans, inPlace)
	if known && bytes >= 1<<10 {
		m.wire[way] = m.busiestLink(plans) / moment(bytes>>10)
	}
	return d, known
}

// isLighter reports whether a way occupies the busiest link for a clearly shorter time than another one. For long buffers, it is faster then.
func (m *comparison) isLighter(way, other string) bool {
	mine, knowsMine := m.wire[way]
	others, knowsOthers := m.wire[other]
	return knowsMine && knowsOthers && mine+mine*clearly/100 < others
}

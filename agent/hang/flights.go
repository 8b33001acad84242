package hang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A flight is the part of a comm.Flight that is merged.
type flight struct {
	Rank        int          `json:"rank"`
	Group       []int        `json:"group"`
	Failed      string       `json:"failed"`
	Waits       []flightWait `json:"waits"`
	Collectives []flightCall `json:"collectives"`
	Transfers   []flightCall `json:"transfers"`
}

type flightCall struct {
	Seq     uint64  `json:"seq"`
	Call    string  `json:"call"`
	Peer    *int    `json:"peer"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
}

type flightWait struct {
	For int    `json:"for"`
	In  string `json:"in"`
}

const (
	maxColumns   = 32 // ranks that are put beside each other
	maxTransfers = 16 // of a rank, the last ones
)

// merge puts the flight recorders of ranks beside each other: for each group, a line for each collective, with a column for each rank; then
// what each rank waits for, and its last sends and receives.
func merge(raw []json.RawMessage) string {
	groups := make(map[string][]flight)
	for _, r := range raw {
		var f flight
		if json.Unmarshal(r, &f) == nil {
			key := fmt.Sprint(f.Group)
			groups[key] = append(groups[key], f)
		}
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		ranks := groups[key]
		slices.SortStableFunc(ranks, func(a, b flight) int { return cmp.Compare(a.Rank, b.Rank) })
		fmt.Fprintf(&b, "group %s\n\n", key)
		writeCollectives(&b, ranks[:min(len(ranks), maxColumns)])
		for _, f := range ranks {
			writeRank(&b, f)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func writeCollectives(b *strings.Builder, ranks []flight) {
	rows := make(map[uint64][]string)
	for column, f := range ranks {
		for _, c := range f.Collectives {
			if rows[c.Seq] == nil {
				rows[c.Seq] = make([]string, len(ranks))
			}
			rows[c.Seq][column] = c.String()
		}
	}
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprint(table, "#")
	for _, f := range ranks {
		fmt.Fprintf(table, "\trank %d", f.Rank)
	}
	fmt.Fprintln(table)
	for _, seq := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprint(table, seq)
		for _, cell := range rows[seq] {
			fmt.Fprint(table, "\t"+cmp.Or(cell, "-"))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // to memory: cannot fail
	b.WriteString("\n")
}

func writeRank(b *strings.Builder, f flight) {
	if f.Failed != "" {
		fmt.Fprintf(b, "rank %d: the group has failed: %s\n", f.Rank, f.Failed)
	}
	for _, w := range f.Waits {
		whom := fmt.Sprintf("rank %d", w.For)
		if w.For < 0 {
			whom = "any rank"
		}
		fmt.Fprintf(b, "rank %d waits for %s in %s\n", f.Rank, whom, w.In)
	}
	for _, c := range f.Transfers[max(0, len(f.Transfers)-maxTransfers):] {
		fmt.Fprintf(b, "rank %d: #%d %s\n", f.Rank, c.Seq, c)
	}
}

func (c flightCall) String() string {
	text := c.Call
	if c.Peer != nil {
		text += fmt.Sprintf(" with %d", *c.Peer)
	}
	if c.State != "done" {
		text += fmt.Sprintf(" %s, %.1f s", c.State, c.Seconds)
	}
	return text
}

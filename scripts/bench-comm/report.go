package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// A report holds all results, in the form of the JSON output.
type report struct {
	Machine    string
	Contenders []contender
	Notes      []string // what is not there, or went wrong
	Rounds     int
	Triad      map[int]float64 // MB/s, by ranks
	Goals      []outcome
	Figures    []figure
	options
	samples samples
	where   string // the ranks are; empty: on this machine
}

// introduction says how to read the page.
const introduction = `# Package comm beside Open MPI, MPICH and gloo

Each number is the time of the fastest peer divided by the time of comm: above 1, comm is faster. Dirty memory has just been written by
its rank. Hot memory is still in the caches of the processor that last used it. With more ranks than processors, Open MPI yields and
MPICH does not. gloo supports only TCP, and MPICH uses UCX for TCP. A second table shows microseconds. The command
` + "`go run ./scripts/bench-comm -svg docs/results/bench-comm.svg`" + ` printed this page. The comment of that command says how it measures.

`

// print writes a page: how far the goals were reached, and, for each cell, the ratio to the best peer with the same transport.
func (r report) print(w io.Writer) {
	fmt.Fprint(w, introduction)
	fmt.Fprintf(w, "Medians of %d rounds, on %s: %s.\n\n", r.Rounds, r.Machine, strings.Join(r.versions(), ", "))
	if r.svg != "" {
		fmt.Fprintf(w, "![time against bytes](%s)\n\n", filepath.Base(r.svg))
	}
	for _, text := range r.Notes {
		fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(text, "\n", " "))
	}
	for _, ranks := range slices.Sorted(maps.Keys(r.Triad)) {
		fmt.Fprintf(w, "- STREAM's triad, %d ranks, arrays of %s: %.1f GB/s\n", ranks, size(r.sizes[len(r.sizes)-1]), r.Triad[ranks]/1e3)
	}
	fmt.Fprint(w, "\n## Goals\n\n")
	r.printGoals(w)
	for _, c := range r.Contenders {
		if c.isOurs() {
			r.printContender(w, c)
		}
	}
}

// printContender prints a table for each number of ranks and state of memory.
func (r report) printContender(w io.Writer, ours contender) {
	var peers []string
	for _, c := range r.Contenders {
		if !c.isOurs() && c.Transport == ours.Transport {
			peers = append(peers, c.Name)
		}
	}
	for _, ranks := range r.ranks {
		for _, state := range r.states {
			in := func(c cell) bool {
				return c.Ranks == ranks && (c.State == state || c.Bytes == 0 && state == r.states[0])
			}
			list := r.samples.ratios(ours.Name, peers, in)
			if len(list) > 0 {
				fmt.Fprintf(w, "\n## %s, %d ranks, %s\n\nThe peers are %s.\n\n", ours.Name, ranks, state, strings.Join(peers, ", "))
				printRatios(w, list)
				fmt.Fprint(w, "\nMicroseconds of the fastest peer / of comm:\n\n")
				r.samples.printTimes(w, ours.Name, peers, in)
			}
		}
	}
}

// isOurs says whether it is package comm.
func (c contender) isOurs() bool { return strings.HasPrefix(c.Name, "comm") }

// versions returns each library once, with its version.
func (r report) versions() (list []string) {
	for _, c := range r.Contenders {
		list = append(list, strings.TrimSuffix(c.Name, " tcp")+" "+c.Version)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (r report) printGoals(w io.Writer) {
	rows := [][]string{{"goal", "mean", "reached", "floor", "cells below", "worst"}}
	for _, g := range r.Goals {
		row := []string{g.What, fmt.Sprintf("≥ %g", g.Mean), "not measured", "", "", ""}
		if g.Floor > 0 {
			row[3] = fmt.Sprintf("%g", g.Floor)
		}
		if g.Cells > 0 {
			row[2] = times(g.Reached)
			row[5] = fmt.Sprintf("%s (%s, %s)", times(g.Worst.Value), g.Worst.cell, g.Worst.Peer)
			if g.Floor > 0 {
				row[4] = fmt.Sprintf("%d of %d", g.Below, g.Cells)
			}
		}
		rows = append(rows, row)
	}
	printTable(w, rows)
}

// printTimes has a row for each operation that ours has measured, a column for each size and one for operations without. A cell has the
// times of the best peer and of ours.
func (s samples) printTimes(w io.Writer, ours string, peers []string, in func(cell) bool) {
	columns, texts := []int{}, make(map[string]map[int]string)
	for c := range s[ours] {
		if !in(c) {
			continue
		}
		_, peer := s.best(peers, c)
		if texts[c.Op] == nil {
			texts[c.Op] = make(map[int]string)
		}
		texts[c.Op][c.Bytes] = fmt.Sprintf("%s / %s", microseconds(peer), microseconds(s.time(ours, c)))
		columns = append(columns, c.Bytes)
	}
	slices.SortFunc(columns, func(a, b int) int { return cmp.Compare(uint(a-1), uint(b-1)) }) // 0 is last
	columns = slices.Compact(columns)
	head := []string{""}
	for _, n := range columns {
		head = append(head, strings.TrimPrefix(size(n), "0 B"))
	}
	rows := [][]string{head}
	for _, op := range allOps {
		if texts[op] == nil {
			continue
		}
		row := []string{op}
		for _, n := range columns {
			row = append(row, texts[op][n])
		}
		rows = append(rows, row)
	}
	printTable(w, rows)
}

// microseconds writes a time with two digits at least; what was not measured is "-".
func microseconds(us float64) string {
	switch {
	case math.IsNaN(us):
		return "-"
	case us < 9.95:
		return fmt.Sprintf("%.1f", us)
	default:
		return fmt.Sprintf("%.0f", us)
	}
}

// printRatios has a row for each operation, a column for each size, and geometric means; and names the worst cell.
func printRatios(w io.Writer, list []ratio) {
	var sizes []int
	for _, x := range list {
		if x.Bytes > 0 && !slices.Contains(sizes, x.Bytes) {
			sizes = append(sizes, x.Bytes)
		}
	}
	slices.Sort(sizes)
	head := []string{""}
	for _, n := range sizes {
		head = append(head, size(n))
	}
	rows := [][]string{append(head, "mean")}
	for _, op := range allOps {
		row, of := slices.Repeat([]string{""}, len(head)), slices.DeleteFunc(slices.Clone(list), func(x ratio) bool { return x.Op != op })
		if len(of) == 0 {
			continue
		}
		row[0] = op
		for _, x := range of {
			if i := slices.Index(sizes, x.Bytes); i >= 0 {
				row[i+1] = times(x.Value)
			}
		}
		rows = append(rows, append(row, times(geometricMean(of))))
	}
	printTable(w, rows)
	low := worst(list, func(cell) float64 { return 1 })
	fmt.Fprintf(w, "\nGeometric mean %s; worst %s (%s, %s).\n", times(geometricMean(list)), times(low.Value), low.cell, low.Peer)
}

// printTable aligns columns, for people who read the source.
func printTable(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	for n, row := range rows {
		for i, text := range row {
			fmt.Fprintf(w, "| %-*s ", widths[i], text)
		}
		fmt.Fprintln(w, "|")
		if n > 0 {
			continue
		}
		for _, width := range widths {
			fmt.Fprintf(w, "|%s", strings.Repeat("-", width+2))
		}
		fmt.Fprintln(w, "|")
	}
}

// times writes a ratio with two significant digits, or as a whole number if it has more.
func times(x float64) string {
	switch {
	case x >= 9.95:
		return fmt.Sprintf("%.0f", x)
	case x >= 0.995:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2g", x)
	}
}

// size writes bytes.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d B", n)
	}
}

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A row is the result for one size.
type row struct {
	Operation  string   `json:"operation"`
	Ranks      int      `json:"ranks"`
	Size       int64    `json:"size"`
	Count      int      `json:"count"`
	Type       string   `json:"type"`
	Op         string   `json:"redop"`
	Root       int      `json:"root"`
	Transport  string   `json:"transport"`
	Dirty      bool     `json:"dirty"`
	Alloc      bool     `json:"alloc"`
	OutOfPlace *figures `json:"out_of_place"` // nil: there is no such call
	InPlace    *figures `json:"in_place"`
}

// figures are those of one form of a call.
type figures struct {
	Calls int      `json:"iterations"`
	Time  float64  `json:"us"` // of a call: the slowest rank's mean
	P50   *float64 `json:"p50_us,omitempty"`
	P99   *float64 `json:"p99_us,omitempty"`
	AlgBW float64  `json:"algbw"` // GB/s
	BusBW float64  `json:"busbw"`
	Wrong *int     `json:"wrong"` // nil: not checked
}

func newRow(e experiment, ranks int, size int64, count int, c *Config) *row {
	r := &row{Operation: e.name, Ranks: ranks, Size: size, Count: count, Type: e.typ.name, Op: e.op, Root: e.root, Transport: c.Transport, Dirty: c.Dirty, Alloc: c.Alloc}
	if r.Op == "" {
		r.Op = "none"
	}
	return r
}

func newFigures(e experiment, ranks int, size int64, m measurement, wrong *int, percentiles bool) *figures {
	f := &figures{Calls: m.calls, Time: rounded(m.mean * 1e6), Wrong: wrong}
	if percentiles {
		f.P50, f.P99 = new(rounded(m.p50*1e6)), new(rounded(m.p99*1e6))
	}
	if e.moves() && m.mean > 0 {
		alg := float64(size) / m.mean / 1e9
		f.AlgBW, f.BusBW = rounded(alg), rounded(alg*e.bus(float64(ranks)))
	}
	return f
}

// rounded returns v with six digits, which is more than any clock gives.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // which cannot fail
	return v
}

// A printer writes rows: as a table for each operation, in the form of nccl-tests, or in JSON.
type printer struct {
	c     *Config
	out   io.Writer
	err   error // the first in writing
	wrong int   // elements of all rows so far

	table struct { // of the operation begun
		name       string
		wrong      int
		busBW      float64 // their sum
		bandwidths int
	}
}

func (r *printer) line(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.out, format+"\n", args...)
	}
}

// start prints what is measured, and where.
func (r *printer) start(members []rankInfo) {
	if r.c.JSON {
		return
	}
	step := fmt.Sprintf("%d(factor)", r.c.Sizes.Factor)
	if r.c.Sizes.Step > 0 {
		step = fmt.Sprintf("%d(bytes)", r.c.Sizes.Step)
	}
	iterations := "auto"
	if r.c.Iterations > 0 {
		iterations = strconv.Itoa(r.c.Iterations)
	}
	r.line("# nRanks %d minBytes %d maxBytes %d step: %s warmup iters: %d iters: %s validation: %d dirty: %t alloc: %t transport: %s",
		len(members), r.c.Sizes.Min, r.c.Sizes.Max, step, r.c.Warmup, iterations, r.c.Checks, r.c.Dirty, r.c.Alloc, r.c.Transport)
	r.line("#\n# Using")
	for rank, m := range members {
		r.line("#  Rank %2d Pid %6d on %s", rank, m.Pid, m.Host)
	}
}

// begin begins the table of an operation.
func (r *printer) begin(name string) {
	r.table.name, r.table.wrong, r.table.busBW, r.table.bandwidths = name, 0, 0, 0
	if r.c.JSON {
		return
	}
	half := fmt.Sprintf("  %7s%s  %6s  %6s  %6s", "time", r.percentiles("p50", "p99"), "algbw", "busbw", "#wrong")
	units := fmt.Sprintf("  %7s%s  %6s  %6s  %6s", "(us)", r.percentiles("(us)", "(us)"), "(GB/s)", "(GB/s)", "")
	place := func(name string) string {
		return fmt.Sprintf("%*s", len(half), name+strings.Repeat(" ", (len(half)-len(name))/2))
	}
	r.line("#\n# %s: %s", name, About(name))
	r.line("#%s%s%s", strings.Repeat(" ", rowLength-1), place("out-of-place"), strings.TrimRight(place("in-place"), " "))
	r.line("#%s%s%s", fmt.Sprintf(rowFormat, "size", "count", "type", "redop", "root")[1:], half, half)
	r.line("#%s%s%s", fmt.Sprintf(rowFormat, "(B)", "(elements)", "", "", "")[1:], units, strings.TrimRight(units, " "))
}

// The columns before the figures.
const (
	rowFormat = "%12v  %12v  %10v  %6v  %6v"
	rowLength = 12 + 2 + 12 + 2 + 10 + 2 + 6 + 2 + 6
)

func (r *printer) percentiles(p50, p99 string) string {
	if !r.c.P99 {
		return ""
	}
	return fmt.Sprintf("  %7s  %7s", p50, p99)
}

func (r *printer) row(row *row) {
	for _, f := range []*figures{row.OutOfPlace, row.InPlace} {
		if f == nil {
			continue
		}
		if f.Wrong != nil {
			r.table.wrong += *f.Wrong
			r.wrong += *f.Wrong
		}
		if row.Size > 0 {
			r.table.busBW += f.BusBW
			r.table.bandwidths++
		}
	}
	if r.c.JSON {
		text, err := json.Marshal(row)
		if err != nil {
			r.err = err
			return
		}
		r.line("%s", text)
		return
	}
	r.line(rowFormat+"%s%s", row.Size, row.Count, row.Type, row.Op, row.Root, r.half(row, row.OutOfPlace), r.half(row, row.InPlace))
}

// half returns the columns of one form, out of place or in place.
func (r *printer) half(row *row, f *figures) string {
	time, p50, p99, alg, bus, wrong := "-", "-", "-", "-", "-", "-"
	if f != nil {
		time, wrong = brief(f.Time), "N/A"
		if row.Size > 0 {
			alg, bus = brief(f.AlgBW), brief(f.BusBW)
		}
		if f.P50 != nil {
			p50, p99 = brief(*f.P50), brief(*f.P99)
		}
		if f.Wrong != nil {
			wrong = strconv.Itoa(*f.Wrong)
		}
	}
	return fmt.Sprintf("  %7s%s  %6s  %6s  %6s", time, r.percentiles(p50, p99), alg, bus, wrong)
}

// end ends the table of an operation, if one has begun.
func (r *printer) end() {
	if r.c.JSON || r.table.name == "" {
		return
	}
	verdict := "OK"
	if r.table.wrong > 0 {
		verdict = "FAILED"
	}
	r.line("# Out of bounds values : %d %s", r.table.wrong, verdict)
	if r.table.bandwidths > 0 {
		r.line("# Avg bus bandwidth    : %.6g", r.table.busBW/float64(r.table.bandwidths))
	}
}

// brief writes a number that is not negative in 6 characters, if it is less than a million.
func brief(v float64) string {
	digits := 0
	switch {
	case v < 9.9995:
		digits = 3
	case v < 999.995:
		digits = 2
	case v < 9999.95:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

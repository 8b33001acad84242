package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A cell is what all contenders measure.
type cell struct {
	Op    string
	Ranks int
	Bytes int
	State string
}

func (c cell) String() string {
	if c.Bytes == 0 {
		return fmt.Sprintf("%s, %d ranks", c.Op, c.Ranks)
	}
	return fmt.Sprintf("%s of %s, %s, %d ranks", c.Op, size(c.Bytes), c.State, c.Ranks)
}

// samples are microseconds: by contender, of each round.
type samples map[string]map[cell][]float64

func (s samples) add(contender string, c cell, us float64) {
	if s[contender] == nil {
		s[contender] = make(map[cell][]float64)
	}
	s[contender][c] = append(s[contender][c], us)
}

// parse adds what a launch printed, whatever is before it on its lines.
func (s samples) parse(contender string, ranks int, out string) error {
	for line := range strings.Lines(out) {
		_, text, ok := strings.Cut(line, "result ")
		if !ok {
			continue
		}
		c, us := cell{Ranks: ranks}, 0.0
		if _, err := fmt.Sscanf(text, "%s %d %s %g", &c.Op, &c.Bytes, &c.State, &us); err != nil {
			return fmt.Errorf("result %q: %w", strings.TrimSpace(text), err)
		}
		if us > 0 { // or else writing alone took longer than with the call: noise
			s.add(contender, c, us)
		}
	}
	return nil
}

// time is the median over rounds, NaN if there is none.
func (s samples) time(contender string, c cell) float64 {
	return median(s[contender][c])
}

// best is the contender with the shortest time, and that.
func (s samples) best(contenders []string, c cell) (name string, us float64) {
	us = math.NaN()
	for _, contender := range contenders {
		if t := s.time(contender, c); !math.IsNaN(t) && !(t >= us) {
			name, us = contender, t
		}
	}
	return name, us
}

// A ratio says how many times longer than comm the best of the peers takes.
type ratio struct {
	cell
	Value float64
	Peer  string
}

// ratios are those of all cells that both sides have measured, in the order of operations and sizes.
func (s samples) ratios(ours string, peers []string, in func(cell) bool) (list []ratio) {
	for c := range s[ours] {
		if peer, us := s.best(peers, c); peer != "" && in(c) {
			list = append(list, ratio{c, us / s.time(ours, c), peer})
		}
	}
	slices.SortFunc(list, func(a, b ratio) int { return compareCells(a.cell, b.cell) })
	return list
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.Ranks, b.Ranks), cmp.Compare(place(a.Op), place(b.Op)), cmp.Compare(a.Bytes, b.Bytes), -cmp.Compare(a.State, b.State))
}

// place is where an operation stands in tables.
func place(op string) int {
	if i := slices.Index(allOps, op); i >= 0 {
		return i
	}
	return len(allOps)
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	switch n := len(v); {
	case n == 0:
		return math.NaN()
	case n%2 == 0:
		return (v[n/2-1] + v[n/2]) / 2
	default:
		return v[n/2]
	}
}

// geometricMean is NaN of nothing.
func geometricMean(list []ratio) float64 {
	sum := 0.0
	for _, r := range list {
		sum += math.Log(r.Value)
	}
	return math.Exp(sum / float64(len(list)))
}

// worst returns the ratio that is lowest relative to what is wanted.
func worst(list []ratio, wanted func(cell) float64) ratio {
	return slices.MinFunc(list, func(a, b ratio) int {
		return cmp.Compare(a.Value/wanted(a.cell), b.Value/wanted(b.cell))
	})
}

// triad is STREAM's triad, a = b + 3c, which each rank computes by itself over arrays of the given size. As a contender,
// it is the limit that memory sets for all_reduce.
const triad = "triad"

// triad returns its best speed with the largest arrays by number of ranks, of all ranks together, in bytes a microsecond.
func (s samples) triad() map[int]float64 {
	largest, speed := make(map[int]int), make(map[int]float64)
	for _, measured := range s {
		for c, us := range measured {
			if c.Op != triad || c.Bytes < largest[c.Ranks] {
				continue
			}
			if c.Bytes > largest[c.Ranks] {
				largest[c.Ranks], speed[c.Ranks] = c.Bytes, 0
			}
			speed[c.Ranks] = max(speed[c.Ranks], 3*float64(c.Ranks*c.Bytes)/median(us))
		}
	}
	return speed
}

// addBound adds the times that all_reduce would take at these speeds: it must read each byte of each rank once, and write it
// once.
func (s samples) addBound(speed map[int]float64) {
	bound := make(map[cell][]float64)
	for _, measured := range s {
		for c := range measured {
			if c.Op == "all_reduce" && speed[c.Ranks] > 0 {
				bound[c] = []float64{2 * float64(c.Ranks*c.Bytes) / speed[c.Ranks]}
			}
		}
	}
	s[triad] = bound
}

// A figure is what one contender did in one cell.
type figure struct {
	Contender string
	cell
	Microseconds float64 // the median
	Rounds       []float64
}

func (s samples) figures() (list []figure) {
	for contender, cells := range s {
		for c, rounds := range cells {
			list = append(list, figure{contender, c, median(rounds), rounds})
		}
	}
	slices.SortFunc(list, func(a, b figure) int {
		return cmp.Or(compareCells(a.cell, b.cell), cmp.Compare(a.Contender, b.Contender))
	})
	return list
}

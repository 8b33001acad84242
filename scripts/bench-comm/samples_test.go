package main

import (
	"math"
	"strings"
	"testing"
)

// exampleSamples is what two contenders printed in two rounds.
func exampleSamples(t *testing.T) samples {
	t.Helper()
	s := make(samples)
	for _, launch := range []struct{ contender, out string }{
		{"comm", "[0] result all_reduce 64 hot 2\n[0] result all_reduce 16777216 dirty 1000\nresult barrier 0 hot 0.5\n"},
		{"Open MPI", "warning: something\nresult all_reduce 64 hot 1\nresult all_reduce 16777216 dirty 8000\nresult barrier 0 hot 1\n"},
		{"Open MPI", "result triad 64 hot 1\nresult triad 16777216 hot 2000\n"},
		{"comm", "[0] result all_reduce 64 hot 4\n[0] result all_reduce 16777216 dirty 3000\nresult barrier 0 hot -0.5\n"},
		{"MPICH", "result all_reduce 64 hot 6\n"},
	} {
		if err := s.parse(launch.contender, 2, launch.out); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestParse(t *testing.T) {
	s := exampleSamples(t)
	for _, test := range []struct {
		contender string
		cell      cell
		want      float64
	}{
		{"comm", cell{"all_reduce", 2, 64, "hot"}, 3},
		{"comm", cell{"barrier", 2, 0, "hot"}, 0.5},
		{"Open MPI", cell{"all_reduce", 2, 16 << 20, "dirty"}, 8000},
		{"MPICH", cell{"all_reduce", 2, 16 << 20, "dirty"}, math.NaN()},
		{"nobody", cell{"all_reduce", 2, 64, "hot"}, math.NaN()},
	} {
		if got := s.time(test.contender, test.cell); got != test.want && !(math.IsNaN(got) && math.IsNaN(test.want)) {
			t.Errorf("%s, %v: %v, want %v", test.contender, test.cell, got, test.want)
		}
	}
	for _, line := range []string{"result all_reduce", "result all_reduce x hot 1", "result all_reduce 64 hot fast"} {
		if err := s.parse("comm", 2, line); err == nil {
			t.Errorf("%q is a result", line)
		}
	}
}

func TestRatios(t *testing.T) {
	list := exampleSamples(t).ratios("comm", mpis, func(cell) bool { return true })
	want := []ratio{
		{cell{"all_reduce", 2, 64, "hot"}, 1.0 / 3, "Open MPI"},
		{cell{"all_reduce", 2, 16 << 20, "dirty"}, 4, "Open MPI"},
		{cell{"barrier", 2, 0, "hot"}, 2, "Open MPI"},
	}
	if len(list) != len(want) {
		t.Fatalf("%v, want %v", list, want)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%v, want %v", list[i], want[i])
		}
	}
	if mean := geometricMean(list); math.Abs(mean-math.Cbrt(8.0/3)) > 1e-12 {
		t.Errorf("the mean is %v", mean)
	}
	low := worst(list, func(c cell) float64 { return map[bool]float64{true: 100, false: 1}[c.Bytes == 0] })
	if low != list[2] {
		t.Errorf("the worst is %v", low)
	}
}

// TestTriad: 3 arrays of 16 MiB on each of 2 ranks in 2 ms; all_reduce has to move 2, as many bytes on each.
func TestTriad(t *testing.T) {
	s := exampleSamples(t)
	speed := s.triad()
	if want := 2 * 3 * float64(16<<20) / 2000; speed[2] != want {
		t.Errorf("speed %v, want %v", speed, want)
	}
	s.addBound(speed)
	if got := s.time(triad, cell{"all_reduce", 2, 16 << 20, "dirty"}); math.Abs(got-2000*2/3.) > 1e-9 {
		t.Errorf("bound %v", got)
	}
}

func TestGoals(t *testing.T) {
	s := exampleSamples(t)
	o := goals[0].outcome(s)
	if o.Cells != 2 || o.Below != 1 || o.Worst.Bytes != 64 || math.Abs(o.Reached-math.Sqrt(4.0/3)) > 1e-12 {
		t.Errorf("%+v", o)
	}
	if small := goals[0].floor(cell{"reduce", 2, 64, "hot"}); small != 1 {
		t.Errorf("the floor of small reduces is %v", small)
	}
	if o := goals[3].outcome(s); o.Cells != 1 || o.Below != 0 || o.Reached != 2 {
		t.Errorf("%+v", o)
	}
	if o := goals[len(goals)-1].outcome(s); o.Cells != 0 || o.Reached != 0 {
		t.Errorf("there is no gloo: %+v", o)
	}
}

// TestPrintTimes: the fastest peer and comm; a cell that comm has not measured stays empty, and one without a peer has a dash.
func TestPrintTimes(t *testing.T) {
	s := exampleSamples(t)
	s.add("MPICH", cell{"reduce", 2, 64, "hot"}, 1)
	s.add("comm", cell{"broadcast", 2, 64, "hot"}, 2)
	var b strings.Builder
	s.printTimes(&b, "comm", mpis, func(c cell) bool { return c.Bytes < 1<<20 })
	const want = `|            | 64 B      |           |
|------------|-----------|-----------|
| all_reduce | 1.0 / 3.0 |           |
| broadcast  | - / 2.0   |           |
| barrier    |           | 1.0 / 0.5 |
`
	if b.String() != want {
		t.Errorf("%s, want\n%s", &b, want)
	}
}

func TestPrintRatios(t *testing.T) {
	var b strings.Builder
	printRatios(&b, exampleSamples(t).ratios("comm", mpis, func(cell) bool { return true }))
	const want = `|            | 64 B | 16 MiB | mean |
|------------|------|--------|------|
| all_reduce | 0.33 | 4.0    | 1.2  |
| barrier    |      |        | 2.0  |

Geometric mean 1.4; worst 0.33 (all_reduce of 64 B, hot, 2 ranks, Open MPI).
`
	if b.String() != want {
		t.Errorf("%s, want\n%s", &b, want)
	}
}

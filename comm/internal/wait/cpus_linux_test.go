package wait

import (
	"runtime"
	"testing"
)

func TestCPUs(t *testing.T) {
	if n := CountCPUs(CPUs()); n != runtime.NumCPU() {
		t.Errorf("%q are %d processors, want %d", CPUs(), n, runtime.NumCPU())
	}
	for _, c := range []struct {
		sets []string
		want int
	}{
		{nil, 0},
		{[]string{"01"}, 1},
		{[]string{"01", "02"}, 2},
		{[]string{"03", "00000080"}, 3},
		{[]string{"ff", "ff"}, 8},
		{[]string{"ff", ""}, 0},
		{[]string{"nonsense"}, 0},
	} {
		if n := CountCPUs(c.sets...); n != c.want {
			t.Errorf("%q are %d processors, want %d", c.sets, n, c.want)
		}
	}
}

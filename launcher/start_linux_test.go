package launcher

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart runs gangs of /bin/true from Start to the end of Exits, with the environment that workers have on a
// login node. started-ns/op is the part until Start returns.
func BenchmarkStart(b *testing.B) {
	var env []string
	for i := range 100 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=%s", i, strings.Repeat("x", 50)))
	}
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("%d-workers", n), func(b *testing.B) {
			workers := workersOf(n)
			for i := range workers {
				workers[i].Env = append(env, workers[i].Env...)
			}
			var started time.Duration
			for b.Loop() {
				begin := time.Now()
				g, err := Start(b.Context(), Spec{Argv: []string{"/bin/true"}, Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				started += time.Since(begin)
				for e := range g.Exits() {
					if e.Failed() {
						b.Fatal(e)
					}
				}
			}
			b.ReportMetric(float64(started.Nanoseconds())/float64(b.N), "started-ns/op")
		})
	}
}

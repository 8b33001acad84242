package embedded

import (
	"testing"
	"time"
)

// BenchmarkThree measures how long three members on this machine, which start together without data, take until all serve, and how long
// until all have ended when they are closed together and no client is connected.
func BenchmarkThree(b *testing.B) {
	var starting, ending time.Duration
	for b.Loop() {
		configs := three(b, secret)
		for i := range configs {
			configs[i].Dir, configs[i].TempDir = "", b.TempDir()
		}
		servers, errs := make([]*Server, len(configs)), make(chan error)
		began := time.Now()
		for i, c := range configs {
			go func() {
				var err error
				servers[i], err = Start(bounded(b), c)
				errs <- err
			}()
		}
		for range configs {
			if err := <-errs; err != nil {
				b.Fatal(err)
			}
		}
		served := time.Now()
		for _, s := range servers {
			go func() { errs <- s.Close(bounded(b)) }()
		}
		for range servers {
			if err := <-errs; err != nil {
				b.Error(err)
			}
		}
		starting += served.Sub(began)
		ending += time.Since(served)
	}
	b.ReportMetric(float64(starting.Milliseconds())/float64(b.N), "ms-to-start")
	b.ReportMetric(float64(ending.Milliseconds())/float64(b.N), "ms-to-end")
}

package comm

import (
	"runtime"

	"github.com/gorun/gorun/comm/internal/shm"
)

// processors is what the ranks that run on this one's processors have to run on.
func (w *world) processors() shm.Processors {
	here := w.info[w.rank]
	p := shm.Processors{}
	var cpus []string
	for r, other := range w.info {
		if r == w.rank || other.SameKernel(here.Place) {
			p.Ranks++
			p.Shared = p.Shared || r != w.rank && other.SameProcesses(here.Place) && other.PID == here.PID
			cpus = append(cpus, other.CPUs)
		}
	}
	p.CPUs = shm.CountCPUs(cpus...)
	if p.CPUs == 0 || p.Shared {
		p.CPUs = runtime.GOMAXPROCS(0)
	}
	return p
}

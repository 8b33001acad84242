package comm

import (
	"runtime"

	"github.com/gorun/gorun/comm/internal/shm"
)

// processors is what the ranks of this one's machine have to run on.
func (w *world) processors() shm.Processors {
	here := w.info[w.rank]
	p := shm.Processors{}
	var cpus []string
	for r, other := range w.info {
		if other.Host == here.Host {
			p.Ranks++
			p.Shared = p.Shared || r != w.rank && other.PID == here.PID
			cpus = append(cpus, other.CPUs)
		}
	}
	p.CPUs = shm.CountCPUs(cpus...)
	if p.CPUs == 0 || p.Shared {
		p.CPUs = runtime.GOMAXPROCS(0)
	}
	return p
}

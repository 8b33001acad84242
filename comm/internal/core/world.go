package core

import (
	"log/slog"
	"runtime"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/shm/heap"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/wait"
)

// A World has what the groups of a process share.
type World struct {
	WorldConfig
	Endpoint *endpoint.Endpoint
	Heap     *heap.Heap // of Alloc; every group retains it

	// MayOverlap says that each rank of the world has two processors, so that it may move bytes in two goroutines. It
	// is the same on all ranks.
	MayOverlap bool
	// HaveProcessors says that each rank of the world has a processor. It is the same on all ranks.
	HaveProcessors bool

	// Poll is called by calls that wait for long, in the caller's goroutine, every 100 ms. If it returns an error, the call
	// ends with that. nil: nothing is called.
	Poll func() error

	// Bind binds the thread of the goroutine that calls it until that calls what Bind has returned. Calls that the
	// caller's goroutine carries out, or waits in, do so. nil: none does.
	Bind func() (unbind func())

	// CheckBuffers says that calls refuse buffers that are no memory.
	CheckBuffers bool

	// WithDeath returns a failure with the death of the rank that it names, if the agent knows one. It may wait a
	// moment for the agent. nil: this process has no rounds.
	WithDeath func(*diagnosis.Failure) *diagnosis.Failure
}

// WorldConfig says what a World is made of.
type WorldConfig struct {
	Rank      int
	Peers     []Peer // by world rank
	Log       *slog.Logger
	ChunkSize int        // how many bytes of a message of a plan travel at once
	Distances []Distance // of all ranks from rank 0, if machines are far away from each other, as ranks have measured; nil: they are not

	Acceptor  *acceptor.Acceptor // where other ranks of this machine attach the memory of this one; nil: they cannot
	Token     []byte
	MustShare bool // if ranks cannot share memory, calls fail

	// OnFallback is called if ranks cannot share memory, with the reason. It returns an error if they must.
	OnFallback func(reason error) error
}

// A Peer is what groups know of a rank. Ranks exchange it when they join. Ranks of other versions read it, so the JSON
// names stay.
type Peer struct {
	Addr string `json:"addr"` // host:port of its listener
	Host string `json:"host"` // its machine's name
	PID  int    `json:"pid"`
	CPUs string `json:"cpus,omitempty"` // that it may use; see wait.CPUs

	machine.Place        // where it runs
	Acceptor      string `json:"desk,omitempty"` // the address of its acceptor; empty: others cannot attach its memory
}

// memory returns a text that is the same for ranks that can share memory, if both have an acceptor.
func (p *Peer) memory() string { return p.Kernel + " " + p.Network }

// IsSameProcess reports whether p and other are the same process.
func (p *Peer) IsSameProcess(other Peer) bool { return p.PID == other.PID && p.Place == other.Place }

// SharesMemory reports whether this rank may share memory with p, which may be of another world, and is not this
// process.
func (w *WorldConfig) SharesMemory(p Peer) bool {
	me := &w.Peers[w.Rank]
	return p.Acceptor != "" && p.memory() == me.memory() && !p.IsSameProcess(*me)
}

// HasEnded reports whether p, which may be of another world, is known to have ended.
func (w *WorldConfig) HasEnded(p Peer) bool {
	if !p.SameProcesses(w.Peers[w.Rank].Place) {
		return false
	}
	ended, known := machine.AwaitExit(p.PID, 0)
	return ended && known
}

// NewWorld returns the world of a rank. Its endpoint serves on tr.
func NewWorld(cfg WorldConfig, tr transport.Transport, opt endpoint.Options) *World {
	w := &World{WorldConfig: cfg, Heap: heap.New(cfg.Acceptor, cfg.Token)}
	w.HaveProcessors, w.MayOverlap = w.allHaveProcessors(1), w.allHaveProcessors(2)
	opt.Liveness, opt.State, opt.Log = w.liveness, w.State, w.Log
	opt.Oversubscribed, opt.SharesProcess = w.Processors().Oversubscribed(), w.Processors().SameProcess
	w.Endpoint = endpoint.New(tr, w.Rank, len(w.Peers), opt)
	return w
}

// Processors returns the processors of this machine and the number of ranks that share them.
func (w *WorldConfig) Processors() wait.Processors {
	here := w.Peers[w.Rank]
	p := wait.Processors{}
	var cpus []string
	for r, other := range w.Peers {
		if r == w.Rank || other.SameKernel(here.Place) {
			p.Ranks++
			p.SameProcess = p.SameProcess || r != w.Rank && other.SameProcesses(here.Place) && other.PID == here.PID
			cpus = append(cpus, other.CPUs)
		}
	}
	p.CPUs = wait.CountCPUs(cpus...)
	if p.CPUs == 0 || p.SameProcess {
		p.CPUs = runtime.GOMAXPROCS(0)
	}
	return p
}

// hasProcessors reports whether each rank on this machine is known to have a processor. Unlike Processors, it is the
// same on all ranks of the machine: it depends only on what they have told each other.
func (w *WorldConfig) hasProcessors() bool { return w.haveProcessors(w.Peers[w.Rank].Place, 1) }

// haveProcessors reports whether the ranks on a machine are known to have so many processors each.
func (w *WorldConfig) haveProcessors(here machine.Place, each int) bool {
	ranks := 0
	var cpus []string
	for _, other := range w.Peers {
		if other.SameKernel(here) {
			ranks++
			cpus = append(cpus, other.CPUs)
		}
	}
	return wait.CountCPUs(cpus...) >= each*ranks
}

// allHaveProcessors reports whether each rank of the world is known to have so many processors. It is the same on all
// ranks.
func (w *WorldConfig) allHaveProcessors(each int) bool {
	seen := map[string]bool{}
	for _, p := range w.Peers {
		if p.Kernel == "" || !seen[p.Kernel] && !w.haveProcessors(p.Place, each) {
			return false
		}
		seen[p.Kernel] = true
	}
	return true
}

// canShare reports whether some of ranks are on one machine, and each can share memory with the others on its machine.
func (w *World) canShare(ranks []int) bool {
	machines := map[string]bool{}
	for _, r := range ranks {
		if w.Peers[r].Acceptor == "" {
			return false
		}
		machines[w.Peers[r].memory()] = true
	}
	return len(machines) < len(ranks)
}

// needNetwork reports whether some of ranks are on different machines.
func (w *World) needNetwork(ranks []int) bool {
	first := w.Peers[ranks[0]].Place
	return slices.ContainsFunc(ranks, func(r int) bool { return !first.SameNetwork(w.Peers[r].Place) })
}

// ParseTuning parses rules for all algorithms. Every rank has to use the same algorithm for a call. So the choice
// depends only on the call and on the tuning of rank 0, which the others get when they join.
func ParseTuning(rules string) (choice.Tuning, error) {
	return choice.Parse(rules, choice.Messages, choice.Memory)
}

// exitTimeout is how long a process whose connections have closed may take to be gone: the kernel closes them in the
// course of its exit, microseconds before the end.
const exitTimeout = time.Second

// liveness is what can be found out about the process of rank, if it is another one: whether it has ended.
func (w *World) liveness(rank int) diagnosis.Liveness {
	if w.Peers[rank].IsSameProcess(w.Peers[w.Rank]) {
		return diagnosis.Alive
	}
	pid := w.Neighbour(rank)
	if pid == 0 {
		return diagnosis.Unknown
	}
	switch ended, known := machine.AwaitExit(pid, exitTimeout); {
	case !known:
		return diagnosis.Unknown
	case ended:
		return diagnosis.Dead
	}
	return diagnosis.Alive
}

// State says what the process of rank does, if it is another one that can be looked at.
func (w *World) State(rank int) string {
	if pid := w.Neighbour(rank); pid > 0 {
		return machine.ProcessState(pid)
	}
	return ""
}

// Neighbour is the process of rank, or 0 if it is this one, or its number means nothing here.
func (w *World) Neighbour(rank int) int {
	me, other := w.Peers[w.Rank], w.Peers[rank]
	if !me.SameProcesses(other.Place) || other.PID == me.PID {
		return 0
	}
	return other.PID
}

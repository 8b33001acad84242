package agent

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent/internal/workergroup"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A Gang is what the agent needs to control the workers that it started. *launcher.Gang implements it.
type Gang interface {
	workergroup.Gang
	Replace(ctx context.Context, spec launcher.Spec, locals []int) error
	Exits() <-chan death.Death
	Ended() <-chan int
	Finish()
	Interrupted(time.Duration)
	Signal(syscall.Signal)
	Suspend()
	Resume(passed time.Duration)
	Pids() []int
	IsBlocked() bool
}

// Config describes the job on this node. Fields must be set unless their comments say otherwise.
type Config struct {
	Program       string          // as the user named it, for messages
	Python        string          // that runs it; empty: none
	RunID         string          // optional
	Node          rendezvous.Node // this node
	WorkerTLS     bool            // workers encrypt what they send from machine to machine
	MaxRestarts   int             // that of Rendezvous, which has the budget; workers get it in a variable
	ReportTimeout time.Duration   // how long Rendezvous may take to take note of how workers ended
	ExitBarrier   time.Duration   // how long this node, when its workers have succeeded, waits for those of the others
	MaxBackoff    time.Duration   // the longest wait before a restart, for workers that fail again and again; 0: none
	HangTimeout   time.Duration   // after which a worker that reports progress, and makes none any more, has failed; 0: never
	ProgressDir   string          // of the files by which workers report it: nobody else may enter it; set if HangTimeout is

	// Spec is what all attempts have in common. The agent fills in Workers. If Spec.Logs.Dir names the directory
	// of the job (launcher.RunDir), the agent replaces it with the directory of the attempt.
	Spec launcher.Spec
	// Args is how many elements at the end of Spec.Argv are the user's arguments. In these, the agent replaces
	// ${local_rank} with the worker's local rank.
	Args int
	// LocalRankArg puts --local-rank=<local rank> before the user's arguments.
	LocalRankArg bool

	Environ []string // that the workers inherit, "NAME=value"
	// Devices, if not nil, are the values of DeviceVariable (CUDA_VISIBLE_DEVICES) for each local rank. Since each
	// worker then sees only one device, it gets LOCAL_RANK=0; its other variables stay the same.
	Devices        []string
	DeviceVariable string
	CPUs, MemNodes [][]int // by local rank: see launcher.WorkerSpec; nil: all
	MaxProcs       []int   // GOMAXPROCS by local rank; nil: nothing is said
	// Shares are the values of GORUN_CPUS by local rank: the CPUs to which package comm binds the worker, a slash, and all CPUs of the agent.
	// nil: it does not.
	Shares []string

	Prefix string       // template of what stands before a worker's lines: role_name, rank, local_rank
	Show   map[int]bool // by local rank: whose lines the console gets; nil: everybody's

	ErrorDir  string // where attempts keep the workers' error files if Spec.Logs.Dir is empty; both empty: there are none
	ErrorFile string // gets the root cause of a failure, as JSON; empty: none

	// Health finds out whether this node is fit to run workers: before it joins a round, and again after one of its workers has failed.
	// nil: it is.
	Health     func(context.Context) error
	Cooldown   time.Duration // how long a node that is not fit waits before it tries again; doubles each time, to 10 minutes at most
	Rendezvous rendezvous.Rendezvous
	Start      func(context.Context, launcher.Spec) (Gang, error) // launcher.Start
	// SocketDir gets the workers' round sockets: nobody else may enter it. Workers that take part survive a round, if they enter the next one
	// within ReplaceTimeout, and Spec.Apart is set. Empty: none survives.
	SocketDir      string
	ReplaceTimeout time.Duration
	// Interrupts end the job: the workers get the first signal and have InterruptGrace to end; the second signal kills them. A SIGTERM after
	// the end of Run's context is still the first.
	Interrupts <-chan os.Signal
	// InterruptGrace returns how long the workers may take to end after an interrupt, and a note about that for people, which may be
	// empty. It is called when the first interrupt has come. Nil: Spec.Grace.
	InterruptGrace func() (grace time.Duration, note string)
	Signals        <-chan os.Signal // handed on to the workers
	// Suspends suspend the job on this node: first the workers, and then this process, by calling Suspend. Suspend
	// returns when somebody has continued the process, with the time that has passed. Both are optional.
	Suspends <-chan os.Signal
	Suspend  func() (passed time.Duration)
	// Commands are what else people ask of the job while it runs. Each gets an answer, unless the job has ended.
	Commands <-chan Command
	// Emit gets everything that happens on this node, but for the end of the job. It must not wait. nil: nobody wants it.
	Emit func(status.Entry)
	// Publish gets a snapshot of this node after each event. Nobody changes the snapshot. Publish must not wait. nil: nobody wants it.
	Publish func(*status.Node)
	Status  status.Node   // of snapshots: what does not change, and the other fields of Config do not say
	Lease   time.Duration // after which the other nodes give up one that is silent; 0: they do not
	Logger  *slog.Logger
}

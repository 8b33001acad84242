package guard

import (
	"strings"
	"time"
)

// Agent and guard communicate over a socket in lines of JSON: the agent sends commands, and the guard sends events. A guard
// has one gang at a time. Strings of the user are sent as bytes, because JSON would change those that are not UTF-8. The
// workers' environments are sent this way, and not in argv, where all users could read them.

// A Request describes workers to start. Open files precede it (see sendFiles): the stdin of the first worker, if
// Stdin is set, and the workers' ends of their output pipes: stdout and stderr of the first, of the second, ...
type Request struct {
	Stdin    bool     `json:",omitempty"`
	Programs [][]byte // packed: programs and their arguments, each once, however many workers run it
	Workers  []Worker
	Env      []byte // packed: what the environment of every worker begins with

	KillTimeout time.Duration // how long processes may take to end after SIGKILL
	StepSignals []int         `json:",omitempty"` // see launcher.Spec
	Apart       bool          `json:",omitempty"` // each worker ends by itself, and another may be started in its place, until verbFinish
	Preloaded   bool          `json:",omitempty"` // the workers are forked from the interpreter of Preload
	Strict      bool          `json:",omitempty"` // or not at all
}

// Preload describes an interpreter of Python that has imported modules, from which workers are forked. Two open files precede it:
// the bootstrap (see launcher/preload), and what its stdout and stderr are.
type Preload struct {
	Program []byte        // packed: the program of the workers, and its arguments
	Env     []byte        // packed: what the environments of all workers have in common
	Modules []byte        // packed: what it imports
	Limit   time.Duration // that the imports may take

	Impossible string `json:",omitempty"` // why there is no interpreter
}

// A Worker is one process to start.
type Worker struct {
	Worker   int    // its number, by which commands and events name it
	Program  int    // index in Programs
	Env      []byte // packed: the rest of its environment
	CPUs     []int  `json:",omitempty"` // empty: those of the guard
	MemNodes []int  `json:",omitempty"` // empty: any
}

// socketFD is the guard's end of the socket.
const socketFD = 3

type verb string

const (
	verbStart   verb = "start"   // start the workers of Start
	verbStop    verb = "stop"    // end Workers with Signal, after Grace with SIGKILL; a second one changes Grace
	verbKill    verb = "kill"    // end Workers with SIGKILL
	verbSignal  verb = "signal"  // pass Signal on to all
	verbSuspend verb = "suspend" // suspend all, and let no time count until verbResume
	verbResume  verb = "resume"  // continue those that verbSuspend has suspended
	verbFinish  verb = "finish"  // no others will be started in this gang
	verbKeep    verb = "keep"    // remove TempDir if the agent dies
	verbPreload verb = "preload" // start the interpreter of Preload
	verbEnd     verb = "end"     // no gang will follow
)

type command struct {
	Verb    verb
	Start   *Request      `json:",omitempty"`
	Preload *Preload      `json:",omitempty"`
	TempDir []byte        `json:",omitempty"`
	Workers []int         `json:",omitempty"`
	Signal  int           `json:",omitempty"`
	Grace   time.Duration `json:",omitempty"`

	Interrupt bool `json:",omitempty"` // the agent has got Signal itself
}

// An Event has exactly one field set. Started or NotStarted answers a Request, and Gone is the last.
type Event struct {
	Started    map[int]int `json:",omitempty"` // every worker of a Request runs; their pids, by worker
	NotStarted *NotStarted `json:",omitempty"` // this one could not be started; the others of its Request are being killed
	Exit       *Exit       `json:",omitempty"`
	Ended      []int       `json:",omitempty"` // nothing is left of these workers but the processes of Denied and Stuck
	Denied     []int       `json:",omitempty"` // pids that may not be killed: they are another user's
	Stuck      []int       `json:",omitempty"` // pids that SIGKILL has not ended
	Suspended  bool        `json:",omitempty"` // all are, as asked
	Left       map[int]int `json:",omitempty"` // how many processes that outlived their workers the guard has ended, by worker; -1: not known of which
	Warning    string      `json:",omitempty"` // for people to read
	Gone       bool        `json:",omitempty"` // all workers have ended, and no others will be started in this gang
}

// NotStarted says which worker could not be started, and why.
type NotStarted struct {
	Worker int
	Errno  int    // of fork(2) or exec(2)
	Reason string `json:",omitempty"` // for all other errors

	NotPreloaded bool `json:",omitempty"` // Reason says why a Strict request cannot be preloaded
}

// unknownWorker stands for the worker of a process that has inherited nothing from any.
const unknownWorker = -1

// An Exit is how a worker ended.
type Exit struct {
	Worker      int
	Status      uint32 // as wait(2) gives it
	At          int64  // nanoseconds since 1970
	Stopped     bool   // a stop or kill had been taken in before, or Interrupt
	Interrupt   int    `json:",omitempty"` // the signal to all processes of the step that had come before; 0: none
	OutOfMemory bool   // it failed, and the kernel has killed it or another process of the job, it seems
}

// Pack joins a list into one byte string, which is much cheaper in JSON than the list. unpack undoes it if no
// string has a NUL byte.
func Pack(list []string) []byte {
	var b []byte
	for _, s := range list {
		b = append(b, s...)
		b = append(b, 0)
	}
	return b
}

func unpack(b []byte) []string {
	list := strings.Split(string(b), "\x00")
	return list[:len(list)-1] // what follows the last NUL is nothing
}

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// argv0 is the name that tells a process that it is a guard.
const argv0 = "gorun-guard"

// A guard branches off here, so main never runs in it. This package imports little, so Go initialises it before most other packages, and a
// guard does not wait for those: etcd's packages take several times as long as everything that a guard needs.
func init() {
	if len(os.Args) > 0 && os.Args[0] == argv0 {
		os.Exit(run()) //nolint:forbidigo // a guard has no other main
	}
}

// run is the main function of a guard. It returns the exit code when nothing is left of the gang.
func run() int {
	// A worker's parent-death signal comes when the thread that forked it ends: this one never does.
	runtime.LockOSThread()
	signals, err := shield()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	oom := newOOMKills() // while the agent writes to it
	files, err := receiveFiles(socketFD)
	if errors.Is(err, syscall.EMFILE) {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil {
		return 1 // or the agent died
	}
	socket := os.NewFile(socketFD, "agent")
	fromAgent := json.NewDecoder(socket)
	var req Request
	if err := fromAgent.Decode(&req); err != nil {
		return 1 // the agent died before it sent anything
	}
	if len(req.Workers) == 0 {
		return keep(string(req.TempDir), fromAgent, socket)
	}
	g := &gang{toAgent: json.NewEncoder(socket), workers: map[int]int{}, order: newExitOrder(), ranks: map[string]int{}, left: map[int]int{},
		oom: oom, killTimeout: req.KillTimeout, step: stepSignals{arrived: signals, at: map[syscall.Signal][]time.Time{}}}
	g.step.await(0, 0) // nobody was there to get these
	for _, n := range req.StepSignals {
		g.step.ending = append(g.step.ending, syscall.Signal(n))
	}
	g.start(req, files)
	g.loop(fromAgent)
	if g.agentLost && len(req.TempDir) > 0 { // nobody is left to remove it
		_ = os.RemoveAll(string(req.TempDir))
	}
	return 0
}

// shield makes this process a guard: it adopts orphans, survives signals that are meant for the agent, and
// keeps its descriptors from the workers. It returns a channel that gets these signals.
func shield() (<-chan os.Signal, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become a subreaper: %w", err)
	}
	// A name without "gorun": "pkill -9 gorun" must not kill both the agent and what cleans up after it.
	_ = os.WriteFile("/proc/self/comm", []byte("guard"), 0) // does without, if it must

	// Caught, and dropped unless this is a step of Slurm. Ignoring them instead would be inherited by the workers, through exec; what nohup has made
	// the agent ignore is to be inherited.
	caught := make(chan os.Signal, 64)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH} {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		if n, err := strconv.Atoi(fd.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n)
		}
	}
	return caught, nil
}

// gang is the state of the guard process. Main's goroutine owns it.
type gang struct {
	toAgent     *json.Encoder
	workers     map[int]int // pid -> index in Request.Workers, of those that have not been reaped
	order       *exitOrder
	oom         *oomKills
	phase       phase
	ranks       map[string]int // the variable RANK of each worker, as in its environment -> index in Request.Workers
	left        map[int]int    // pid of a process that has outlived its worker and that this guard has ended -> index, or unknownWorker
	step        stepSignals
	signal      syscall.Signal   // to stop with; 0: the workers have got it
	grace       <-chan time.Time // nil until a stop is asked
	graceEnds   time.Time
	suspended   *suspension      // nil: the gang is not
	killTimeout time.Duration    // with processes that have got SIGKILL
	killEnds    <-chan time.Time // it is over; nil until they are killed
	agentLost   bool
	gone        bool // nothing is left
}

// loop runs until nothing is left of the gang.
func (g *gang) loop(fromAgent *json.Decoder) {
	commands := readCommands(fromAgent)
	exited, reaped := watchChildren()
	for {
		if g.ended() {
			g.transition(allEnded)
		}
		if g.phase == killing {
			g.sweep()
		}
		if g.gone {
			if left := g.countLeft(); len(left) > 0 {
				g.send(Event{Left: left})
			}
			g.send(Event{Gone: true})
			return
		}
		grace, killEnds := g.grace, g.killEnds
		if g.suspended != nil {
			grace, killEnds = nil, nil
		}
		select {
		case <-exited:
			g.reap()
			if g.killEnds != nil {
				g.killEnds = time.After(g.killTimeout) // it goes on
			}
			reaped <- struct{}{}
		case sig := <-g.step.arrived:
			g.step.add(sig)
		case c, ok := <-commands:
			g.reap() // what ended before the command came must not look like its doing
			if !ok {
				commands, g.agentLost = nil, true
				g.transition(agentLost)
				g.resume()
				break
			}
			g.handle(c)
		case <-grace:
			g.transition(timeOver)
		case <-killEnds:
			g.abandonStuck()
		}
	}
}

func (g *gang) handle(c command) {
	switch {
	case c.Verb == verbSignal:
		if sig := syscall.Signal(c.Signal); !g.step.reached(sig) {
			g.signalWorkers(sig)
		}
	case c.Verb == verbSuspend:
		g.suspend()
	case c.Verb == verbResume:
		g.resume()
	case c.Verb == verbKill || c.Grace <= 0:
		g.transition(killAsked)
		g.resume() // so that what is left can end
	case g.phase == running:
		g.startGrace(c.Grace)
		g.signal = syscall.Signal(c.Signal)
		if c.Interrupt && g.step.reached(g.signal) {
			g.signal = 0
		}
		g.transition(stopAsked)
	case g.phase == stopping:
		g.startGrace(c.Grace)
	}
}

// reap collects every child that has ended, worker or orphan, and reports the workers to the agent. Only reap
// collects children, so a pid in g.workers never belongs to another process. It returns how many it
// collected.
//
// Workers come first, in the order in which they ended. Waiting for any child would return them in the order
// of their start, and ranks that failed because another one died could then come before it.
func (g *gang) reap() (n int) {
	for _, pid := range g.order.ended() {
		var status syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err == nil && got == pid {
			g.collected(pid, status)
			n++
		}
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			g.gone = true // no child, so no descendant: orphans would be children
			return n
		case pid <= 0:
			return n
		}
		n++
		g.collected(pid, status)
	}
}

// collected reports the end of pid to the agent if it is a worker.
func (g *gang) collected(pid int, status syscall.WaitStatus) {
	worker, ok := g.workers[pid]
	if !ok {
		return
	}
	delete(g.workers, pid)
	g.order.remove(pid)
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	var interrupt syscall.Signal
	if g.phase == running {
		interrupt = g.step.endedBy(status)
	}
	failed := g.phase < leaving && killed || g.phase == running && interrupt == 0 && status != 0 // and not by this guard
	g.send(Event{Exit: &Exit{Worker: worker, Status: uint32(status), At: time.Now().UnixNano(),
		Stopped: g.phase != running || interrupt != 0, Interrupt: int(interrupt), OutOfMemory: failed && g.oom.take(killed)}})
}

// send sends an event to the agent. If that fails, the agent is dead, and the socket's end of file follows.
func (g *gang) send(e Event) { _ = g.toAgent.Encode(e) }

func readCommands(fromAgent *json.Decoder) <-chan command {
	commands := make(chan command)
	go func() {
		defer close(commands)
		for {
			var c command
			if fromAgent.Decode(&c) != nil {
				return
			}
			commands <- c
		}
	}()
	return commands
}

// watchChildren sends on exited whenever there is a child to reap, and once when no child is left. After each
// send, it waits for reaped. It does not reap.
func watchChildren() (exited <-chan struct{}, reaped chan<- struct{}) {
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			ready <- struct{}{}
			<-done
			if err != nil {
				return
			}
		}
	}()
	return ready, done
}

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
	agent := &receiver{socket: socketFD}
	agent.commands = json.NewDecoder(agent)
	g := &gang{toAgent: json.NewEncoder(os.NewFile(socketFD, "agent")), order: newExitOrder(), workers: map[int]*worker{}, marks: map[string]*worker{},
		spared: map[int]uint64{}, preloading: map[int]bool{}, oom: oom, idle: true, step: stepSignals{arrived: signals, at: map[syscall.Signal][]time.Time{}}}
	g.loop(agent.follow())
	g.interpreter.wait()
	if g.agentLost && !remove(g.tempDir) { // nobody else is left to do so
		return 1
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

// gang is the state of the guard process, for one gang after the other. Main's goroutine owns it.
type gang struct {
	toAgent     *json.Encoder
	units       []*unit
	workers     map[int]*worker    // by pid, of all units. No other process group can get such a number as long as the unit exists
	marks       map[string]*worker // by the variable that only they have
	several     bool               // workers have been started together
	apart       bool               // see Request
	idle        bool               // there is no gang
	finished    bool               // no others will be started in it
	ending      bool               // no gang will follow
	order       *exitOrder
	oom         *oomKills
	step        stepSignals
	suspended   *suspension   // nil: the gang is not
	killTimeout time.Duration // with processes that have got SIGKILL
	tempDir     string
	spared      map[int]uint64 // processes that could not be ended, with their StartTicks
	preloading  map[int]bool   // the process groups of interpreters
	source      *Preload       // of the interpreter; nil: workers need none
	bootstrap   int            // as is output, a file of source
	output      int
	interpreter *interpreter // nil: there has been none
	pending     *message     // a start that waits for the interpreter; nil: none does
	childless   bool         // this process has no child, so no descendant: orphans would be children
	agentLost   bool
}

// loop runs until nothing is left of the gang.
func (g *gang) loop(commands <-chan message) {
	exited := make(chan os.Signal, 1) // one may stand for many
	signal.Notify(exited, syscall.SIGCHLD)
	for {
		g.reap()
		for _, u := range g.units {
			u.proceed()
		}
		g.forgetEnded()
		if len(g.units) == 0 && g.finished && !g.idle && g.pending == nil {
			g.idle = true
			g.send(Event{Gone: true})
		}
		if g.idle && (g.ending || g.agentLost) {
			return
		}
		select {
		case <-exited:
		case sig := <-g.step.arrived:
			g.step.add(sig)
		case c, ok := <-commands:
			g.reap() // what ended before the command came must not look like its doing
			if !ok {
				commands, g.agentLost, g.finished, g.pending = nil, true, true, nil
				g.unite(nil)
				for _, u := range g.units {
					u.transition(agentLost)
				}
				g.resume()
				break
			}
			g.handle(c)
		case m, ok := <-g.interpreter.received():
			g.interpreted(m, ok)
		case <-g.timeOver():
			for _, u := range g.units {
				u.checkTime(time.Now())
			}
			g.checkInterpreter(time.Now())
		}
	}
}

// timeOver returns a channel that is ready when the time of the first unit is over.
func (g *gang) timeOver() <-chan time.Time {
	first := g.interpreter.deadline()
	for _, u := range g.units {
		if !u.ends.IsZero() && (first.IsZero() || u.ends.Before(first)) {
			first = u.ends
		}
	}
	if first.IsZero() || g.suspended != nil {
		return nil
	}
	return time.After(time.Until(first))
}

func (g *gang) handle(c message) {
	switch c.Verb {
	case verbStart:
		g.begin(c)
	case verbKeep:
		g.tempDir = string(c.TempDir)
	case verbPreload:
		g.preload(c)
	case verbSignal:
		if sig := syscall.Signal(c.Signal); !g.step.reached(sig) {
			g.signalWorkers(sig)
		}
	case verbSuspend:
		g.suspend()
	case verbResume:
		g.resume()
	case verbFinish:
		g.finished = true
	case verbEnd:
		g.ending = true
	case verbStop, verbKill:
		g.cancelPending(c.Workers)
		g.end(c)
	}
}

// reap collects every child that has ended, worker or orphan, and reports the workers to the agent. Only reap
// collects children, so the pid of a living worker never belongs to another process. It returns how many it
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
			g.childless = true
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
	delete(g.spared, pid)
	g.interpreter.collected(pid, status)
	w, ok := g.workers[pid]
	if !ok || w.ended {
		return
	}
	w.ended = true
	g.order.remove(pid)
	u := w.unit
	if u.phase == killing {
		u.setTime(g.killTimeout) // it goes on
	}
	killed := status.Signaled() && status.Signal() == syscall.SIGKILL
	var interrupt syscall.Signal
	if u.phase == running {
		interrupt = g.step.endedBy(status)
	}
	failed := u.phase < leaving && killed || u.phase == running && interrupt == 0 && status != 0 // and not by this guard
	g.send(Event{Exit: &Exit{Worker: w.index, Status: uint32(status), At: time.Now().UnixNano(),
		Stopped: u.phase != running || interrupt != 0, Interrupt: int(interrupt), OutOfMemory: failed && g.oom.take(killed)}})
}

// send sends an event to the agent. If that fails, the agent is dead, and the socket's end of file follows.
func (g *gang) send(e Event) { _ = g.toAgent.Encode(e) }

// cleanupTimeout is how long removing the directory may fail because processes that end with the agent still write to
// it.
const cleanupTimeout = 10 * time.Second

// remove removes the directory, if there is one. It reports whether that is done.
func remove(dir string) bool {
	for end := time.Now().Add(cleanupTimeout); dir != "" && os.RemoveAll(dir) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

package guard

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Guard is a running guard, with the connection to it.
type Guard struct {
	process *os.Process
	pid     int
	since   uint64   // its start, in clock ticks
	socket  *os.File // to it
	events  *json.Decoder
	stderr  *os.File // its stderr
	taken   atomic.Bool
	waiting sync.Once
	ended   chan struct{} // closed when it has been waited for

	sending  sync.Mutex
	unsent   []order // a goroutine sends them, if there are any: a guard that is frozen does not take them
	commands *json.Encoder
}

// Start starts a guard for about this number of workers. Called early, it saves the time that a process takes to
// start.
func Start(workers int) (*Guard, error) {
	go growFileTable(4 * workers) // both ends of two pipes each
	return start(forGang)
}

// Keep starts a guard that has no workers, only a directory (see Guard.Keep).
func Keep(dir string) (*Guard, error) {
	g, err := start(forDirectory)
	if err != nil {
		return nil, err
	}
	g.Keep(dir)
	return g, nil
}

// maxStderr is how many bytes of a guard's stderr go into an error.
const maxStderr = 4 << 10

// Stderr returns what the guard has written to stderr, in one line. It is usually empty.
func (g *Guard) Stderr() string {
	if g.stderr == nil {
		return ""
	}
	text := make([]byte, maxStderr)
	n, _ := g.stderr.ReadAt(text, 0) // short, as a rule
	return strings.ReplaceAll(strings.TrimSpace(string(text[:n])), "\n", "; ")
}

// Keep gives the guard a directory: if this process dies before Close, the guard removes it. Unless orders wait for the guard, this one is on its
// way when Keep returns, so it arrives also if this process is killed at once.
func (g *Guard) Keep(dir string) {
	o := order{command: command{Verb: verbKeep, TempDir: []byte(dir)}}
	g.sending.Lock()
	first := len(g.unsent) == 0
	if first {
		_ = o.sendTo(g.socket, g.commands) // fails only if the guard is gone, which Next reports
	}
	g.sending.Unlock()
	if !first {
		g.send(o)
	}
}

// Preload makes the guard start an interpreter, from which it then forks the workers of requests that are Preloaded. bootstrap and output
// are files of Preload, which it closes.
func (g *Guard) Preload(p Preload, bootstrap, output *os.File) {
	g.send(order{command{Verb: verbPreload, Preload: &p}, nil, []*os.File{bootstrap, output}})
}

// Pid returns the guard's process id.
func (g *Guard) Pid() int { return g.pid }

// Take reports whether a gang may take the guard. The guard then belongs to the gang, until Return.
func (g *Guard) Take() bool { return g != nil && g.taken.CompareAndSwap(false, true) }

// Return gives the guard back when its gang is gone, for the next one.
func (g *Guard) Return() {
	g.AnswerBy(time.Time{})
	g.taken.Store(false)
}

// Begin asks the guard to start workers, and passes it stdin, if it is not nil, and the pipes that belong to the
// request. It closes the pipes. Next returns the answer.
func (g *Guard) Begin(req Request, stdin *os.File, pipes []*os.File) {
	req.Stdin = stdin != nil
	g.send(order{command{Verb: verbStart, Start: &req}, stdin, pipes})
}

// Interrupt makes Next fail, whatever AnswerBy says.
func (g *Guard) Interrupt() {
	if raw, err := g.socket.SyscallConn(); err == nil { // else it has been closed
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RD) })
	}
}

// Next waits for the guard's next event. It fails if the guard has died.
func (g *Guard) Next() (e Event, err error) {
	err = g.events.Decode(&e)
	return e, err
}

// Stop makes the guard end workers with sig, and after the grace period with SIGKILL. A second Stop begins another
// such period. interrupt says that the agent has got sig itself.
func (g *Guard) Stop(workers []int, sig syscall.Signal, grace time.Duration, interrupt bool) {
	g.do(command{Verb: verbStop, Workers: workers, Signal: int(sig), Grace: grace, Interrupt: interrupt})
}

// Kill makes the guard end workers with SIGKILL.
func (g *Guard) Kill(workers []int) { g.do(command{Verb: verbKill, Workers: workers}) }

// Signal makes the guard pass sig on to the workers.
func (g *Guard) Signal(sig syscall.Signal) { g.do(command{Verb: verbSignal, Signal: int(sig)}) }

// Suspend makes the guard suspend all processes that it guards; Next reports when that is done. The time of a suspension does not
// count.
func (g *Guard) Suspend() { g.do(command{Verb: verbSuspend}) }

// Resume undoes Suspend.
func (g *Guard) Resume() { g.do(command{Verb: verbResume}) }

// Finish makes the guard end when all workers have ended, if their Request has said that they are Apart.
func (g *Guard) Finish() { g.do(command{Verb: verbFinish}) }

// An order is a command with the files that belong to it.
type order struct {
	command
	stdin *os.File
	pipes []*os.File // are closed when they have been sent
}

func (o order) sendTo(socket *os.File, commands *json.Encoder) error {
	files := o.pipes
	if o.stdin != nil {
		files = append([]*os.File{o.stdin}, files...)
	}
	err := sendFiles(socket, files)
	for _, f := range o.pipes {
		_ = f.Close()
	}
	if err != nil {
		return err
	}
	return commands.Encode(o.command)
}

func (g *Guard) do(c command) { g.send(order{command: c}) }

// send sends an order after those before it. It does not wait. As in the kernel, a signal that has not reached the
// guard is not sent twice.
func (g *Guard) send(o order) {
	g.sending.Lock()
	defer g.sending.Unlock()
	same := func(u order) bool { return u.Verb == verbSignal && u.Signal == o.Signal }
	if len(g.unsent) > 0 && o.Verb == verbSignal && slices.ContainsFunc(g.unsent[1:], same) { // the first is on its way
		return
	}
	if g.unsent = append(g.unsent, o); len(g.unsent) == 1 {
		go g.sendAll()
	}
}

// sendAll fails only if the guard is gone, which Next reports.
func (g *Guard) sendAll() {
	g.sending.Lock()
	defer g.sending.Unlock()
	for len(g.unsent) > 0 {
		o := g.unsent[0]
		g.sending.Unlock()
		_ = o.sendTo(g.socket, g.commands)
		g.sending.Lock()
		g.unsent = g.unsent[1:]
	}
}

// AnswerBy makes Next fail at this time, in case the guard does not answer because it is suspended or frozen.
func (g *Guard) AnswerBy(at time.Time) { _ = g.socket.SetReadDeadline(at) } // fails when nobody reads any more

// Close ends a guard that no gang has.
func (g *Guard) Close() {
	if g.Take() {
		g.Release()
	}
}

// End kills the guard, if it still runs, and all processes that it guarded. It returns those that it may not kill,
// because they belong to another user, and those that did not end within timeout.
func (g *Guard) End(timeout time.Duration) (denied, stuck []int) {
	until := time.Now().Add(timeout)
	_ = g.process.Kill()
	living := noGuard // once it has been waited for its children are ours, and its pid may be anybody's
	if !g.wait(timeout) {
		living = g.pid
		stuck = append(stuck, g.pid)
	}
	denied, others := killOrphans(g.since, living, until)
	return denied, append(stuck, others...)
}

// wait waits for the end of the guard, and reports whether it ended in time.
func (g *Guard) wait(timeout time.Duration) bool {
	g.waiting.Do(func() {
		g.ended = make(chan struct{})
		go func() {
			defer close(g.ended)
			_, _ = g.process.Wait() // it is a child, for which nobody else waits
		}()
	})
	select {
	case <-g.ended:
		return true
	case <-time.After(timeout):
		return false
	}
}

// releaseTimeout is how long a guard that has nothing left to do may take to end.
const releaseTimeout = 5 * time.Second

// Release ends a guard that has nothing left to do, and gives back what it has held here. It returns the guard's last words.
func (g *Guard) Release() (words string) {
	g.do(command{Verb: verbEnd})
	if !g.wait(releaseTimeout) {
		_ = g.process.Kill() // whenever it can
	}
	forget(g.pid)
	g.sending.Lock()
	defer g.sending.Unlock()
	_ = g.socket.Close()
	words = g.Stderr()
	_ = g.stderr.Close() // fails if there is none
	return words
}

package guard

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/proc"
)

// This file is about the interpreter from which workers are forked: what the gang makes of what it says.

// preloadFiles is how many files precede a Preload: the bootstrap, and where the interpreter's output goes.
const preloadFiles = 2

// answerTimeout is how long an interpreter that is ready may take to answer.
const answerTimeout = 5 * time.Second

// notPreloadedError says why a worker cannot be forked.
type notPreloadedError struct{ reason string }

func (e *notPreloadedError) Error() string { return "--preload: " + e.reason }

// preload starts the first interpreter.
func (g *gang) preload(m message) {
	g.source = m.Preload
	g.bootstrap, g.output = m.files[0], m.files[1]
	g.startInterpreter()
}

// startInterpreter starts an interpreter in the place of the one before.
func (g *gang) startInterpreter() {
	g.interpreter.end()
	g.interpreter = newInterpreter(g.source, g.bootstrap, g.output)
	if pid := g.interpreter.pid; pid != 0 {
		g.preloading[pid], g.childless = true, false
	}
}

// askInterpreter makes the interpreter ready for the start that is pending. That of a past gang may have ended, or have read files that
// have changed since.
func (g *gang) askInterpreter() {
	switch i := g.interpreter; {
	case g.source == nil || i.state == useless:
		g.startPending()
	case i.state == over:
		g.startInterpreter()
	case i.state == ready:
		i.ask("check")
	}
}

// interpreted handles what the interpreter says; ok is false if it has ended.
func (g *gang) interpreted(words []string, ok bool) {
	i := g.interpreter
	switch {
	case !ok && i.state == ready:
		i.end()
	case !ok:
		i.fail(fmt.Sprintf("its interpreter %s while it imported %s", i.wait(), i.importing))
	case words[0] == "importing":
		i.importing = words[1]
	case words[0] == "failed":
		i.fail(words[1])
	case words[0] == "changed":
		g.send(Event{Warning: "--preload: " + words[1] + " has changed: a new interpreter imports it"})
		i.end()
	case words[0] == "ready":
		i.state, i.ends = ready, time.Time{}
	}
	switch {
	case i.state == over && g.pending != nil:
		g.startInterpreter()
	case i.state != loading:
		g.startPending()
	}
}

// checkInterpreter gives the interpreter up if its time is over.
func (g *gang) checkInterpreter(now time.Time) {
	i := g.interpreter
	if i.deadline().IsZero() || now.Before(i.ends) {
		return
	}
	if i.state == ready { // it was, and may be again: another takes its place at the next start
		i.why = fmt.Sprintf("its interpreter has not answered within %v", answerTimeout)
		i.end()
	} else {
		i.fail(fmt.Sprintf("the import of %s has not ended within %v", i.importing, g.source.Limit))
	}
	g.startPending()
}

// startPending starts the workers that wait for the interpreter, whatever has become of that.
func (g *gang) startPending() {
	if m := g.pending; m != nil {
		g.pending = nil
		g.start(*m, nil)
	}
}

// cancelPending gives up the start that waits for the interpreter if it is of one of these workers, which are to end.
func (g *gang) cancelPending(workers []int) {
	m := g.pending
	if m == nil || !slices.ContainsFunc(m.Start.Workers, func(w Worker) bool { return slices.Contains(workers, w.Worker) }) {
		return
	}
	g.pending = nil
	g.start(*m, &NotStarted{Worker: m.Start.Workers[0].Worker, Reason: "it was to end before it began"})
}

// fork makes the interpreter fork a worker, whose parent is this process.
func (i *interpreter) fork(argv []string, w Worker, attr *syscall.ProcAttr) (pid int, err error) {
	pid, reason := i.tryFork(argv, w, attr)
	if reason != "" {
		return 0, &notPreloadedError{reason}
	}
	return pid, nil
}

// tryFork is fork, with the reason why it is not possible. A worker waits for a byte before it runs its program, and ends without it: so
// none runs that the gang does not know.
func (i *interpreter) tryFork(argv []string, w Worker, attr *syscall.ProcAttr) (pid int, reason string) {
	switch {
	case i == nil:
		return 0, "there is no interpreter"
	case i.state != ready:
		return 0, i.why
	}
	var release [2]int
	if err := unix.Pipe2(release[:], unix.O_CLOEXEC); err != nil {
		return 0, err.Error()
	}
	defer func() {
		_ = unix.Close(release[0])
		_ = unix.Close(release[1])
	}()
	words := append([]string{"fork", numbers(w.CPUs), numbers(w.MemNodes), strconv.Itoa(len(argv))}, argv...)
	files := append(make([]int, 0, len(attr.Files)+1), release[0])
	for _, fd := range attr.Files {
		files = append(files, int(fd))
	}
	answer, err := i.call(append(words, attr.Env...), files)
	switch {
	case err != nil:
		i.why = err.Error()
		i.end()
		return 0, i.why
	case answer[0] != "forked":
		return 0, answer[1]
	}
	pid, _ = strconv.Atoi(answer[1])
	if p, ok := proc.Read(pid); !ok || p.Parent != os.Getpid() {
		return 0, fmt.Sprintf("process %d of its interpreter is no child of process %d", pid, os.Getpid())
	}
	if _, err := unix.Write(release[1], []byte{1}); err != nil {
		return 0, err.Error()
	}
	return pid, ""
}

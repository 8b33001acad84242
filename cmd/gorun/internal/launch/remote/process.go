package remote

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env"
)

// NodeCommand is the command of gorun that runs one node of a launched job. The time between two of its Heartbeats and the name of its host
// follow, and then gorun's own arguments. It writes its Outcome to ReportFD, and says nothing itself about how the job has ended.
const NodeCommand = "launched-node"

// ReportFD is the descriptor to which gorun writes frames: Heartbeat; Scaled, whenever it learns of that; and at last Ended.
const ReportFD = 3

// start starts gorun. It is killed if this process dies, and its guard then kills the workers.
func start(job frame.Job, said func(report)) (*Process, error) {
	if info, err := os.Stat(string(job.Dir)); len(job.Dir) > 0 && (err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("no directory %s: create it, or give another one with --wdir", strconv.Quote(string(job.Dir)))
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	if err := adopt(); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: exe, Args: append([]string{"gorun", NodeCommand, job.Heartbeat.String()}, texts(job.Args)...),
		Env: env.Merge(os.Environ(), texts(job.Env)), Dir: string(job.Dir), SysProcAttr: attributes(),
	}
	var theirs, ours []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	for range 3 {
		r, w, pipeErr := os.Pipe()
		if err = pipeErr; err != nil {
			return nil, err
		}
		theirs, ours = append(theirs, w), append(ours, r)
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = theirs[0], theirs[1], theirs[2:] // the last one is ReportFD
	p := &Process{Stdout: ours[0], Stderr: ours[1]}
	if job.Stdin {
		if p.Stdin, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	// The parent-death signal comes when the thread that has started the process ends.
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err = <-started; err != nil {
		return nil, fmt.Errorf("cannot start gorun: %w", err)
	}
	p.Signal = func(sig syscall.Signal) {
		if sig == syscall.SIGKILL { // what it has started itself, such as a build, is in its process group; workers are not
			_ = syscall.Kill(-cmd.Process.Pid, sig)
		}
		_ = cmd.Process.Signal(sig) // it may have ended
	}
	last := make(chan []byte, 1)
	go func() {
		last <- follow(ours[2], said)
		_ = ours[2].Close() // if it has said something else, it does not wait until that is read
	}()
	p.Wait = func() frame.Outcome {
		err := <-ended
		_ = ours[2].SetReadDeadline(time.Now().Add(restTimeout)) // nobody else has the other end
		o := outcome(<-last, cmd.ProcessState, err)
		if o.Cause == frame.Died {
			endLeft()
		}
		return o
	}
	return p, nil
}

func texts(list [][]byte) (out []string) {
	for _, text := range list {
		out = append(out, string(text))
	}
	return out
}

// outcome is what gorun said when it ended, or what its end says.
func outcome(said []byte, state *os.ProcessState, err error) frame.Outcome {
	o, parseErr := frame.ParseOutcome(said)
	if state != nil && state.Exited() && parseErr == nil && o.Code == state.ExitCode() {
		return o
	}
	if state == nil {
		return frame.Outcome{Code: 1, Cause: frame.Other, Text: fmt.Sprintf("cannot wait for gorun: %v", err)}
	}
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if code == 0 {
		return frame.Outcome{}
	}
	return frame.Outcome{Code: code, Cause: frame.Died, Text: fmt.Sprintf("gorun has died (%v)", state)}
}

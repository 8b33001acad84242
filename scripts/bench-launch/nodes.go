package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/scripts/internal/peers"
)

// perNode is the number of workers of each node; nodes are agents on this machine.
const perNode = 2

// A job consists of agents that meet. The first one hosts the rendezvous.
type job struct {
	agents []*exec.Cmd
	log    *os.File         // what they say
	ports  [2]*network.Port // they meet at the first one
}

// startJob starts n agents: all at once, or the host first.
func startJob(ctx context.Context, l launcher, nodes string, n int, hostFirst bool, dir string, worker []string) (*job, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	first, next, err := network.ReservePortPair("")
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	port := strconv.Itoa(first.Number())
	j := &job{log: log, ports: [2]*network.Port{first, next}}
	for i := range n {
		a := peers.Command(ctx, l.node(nodes, port, worker))
		a.Stdout, a.Stderr = log, log
		a.Cancel = func() error { return a.Process.Signal(syscall.SIGTERM) }
		a.WaitDelay = 10 * time.Second
		if err := a.Start(); err != nil {
			return nil, errors.Join(err, j.wait(-1))
		}
		j.agents = append(j.agents, a)
		for i == 0 && hostFirst && ctx.Err() == nil {
			if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
				_ = c.Close()
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return j, nil
}

// wait waits for all agents. One of them may have been killed.
func (j *job) wait(killed int) (err error) {
	defer func() { _ = j.log.Close() }()
	defer func() { _, _ = j.ports[0].Close(), j.ports[1].Close() }()
	for i, a := range j.agents {
		if failed := a.Wait(); failed != nil && i != killed {
			err = errors.Join(err, fmt.Errorf("node %d: %w", i, failed))
		}
	}
	if err != nil {
		text, _ := os.ReadFile(j.log.Name())
		err = fmt.Errorf("%w\n%s", err, text)
	}
	return err
}

// run runs a job on nodes to its end.
func (l launcher) run(ctx context.Context, nodes, workers int, dir string, worker []string) error {
	if nodes > 1 {
		j, err := startJob(ctx, l, strconv.Itoa(nodes), nodes, false, dir, worker)
		if err != nil {
			return err
		}
		return j.wait(-1)
	}
	out, err := peers.Command(ctx, l.command(workers, worker)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// loseNode measures the time from the death of the last of three agents to the main of the last worker of the round without it.
func loseNode(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
	j, err := startJob(ctx, l, "2:3", 3, true, dir, b.workerCommand(dir, "wait"))
	if err != nil {
		return 0, 0, err
	}
	awaitUntil(ctx, dir, "began-*-of-6", 3*perNode)
	died := time.Now()
	_ = j.agents[2].Process.Kill()
	awaitUntil(ctx, dir, "began-*-of-4", 2*perNode)
	last, lastErr := newest(dir, "began-*-of-4", 2*perNode)
	return milliseconds(last - died.UnixNano()), 0, errors.Join(lastErr, release(dir), j.wait(2))
}

// idleNode measures what one of two agents, the host or the other one, uses while their workers do nothing.
func idleNode(node int, measure func(a *exec.Cmd, dir string) float64) measure {
	return func(ctx context.Context, b *bench, l launcher, dir string) (float64, int, error) {
		j, err := startJob(ctx, l, "2", 2, true, dir, b.workerCommand(dir, "wait"))
		if err != nil {
			return 0, 0, err
		}
		awaitUntil(ctx, dir, "began-*", 2*perNode)
		value := measure(j.agents[node], dir)
		return value, 0, errors.Join(release(dir), j.wait(-1))
	}
}

// release lets waiting workers end.
func release(dir string) error { return os.WriteFile(filepath.Join(dir, "measured"), nil, 0o600) }

// idleTime is how long idle agents are measured.
const idleTime = 5 * time.Second

// cpu returns how many milliseconds of processor time a launcher uses in a second.
func cpu(a *exec.Cmd, dir string) float64 {
	time.Sleep(time.Second) // the start is over
	before := 0.0
	pids := helpers(a.Process.Pid, dir)
	for _, pid := range pids {
		before -= cpuTime(pid)
	}
	time.Sleep(idleTime)
	for _, pid := range pids {
		before += cpuTime(pid)
	}
	return before / idleTime.Seconds()
}

// resident returns a launcher's proportional set size in MiB.
func resident(a *exec.Cmd, dir string) (mib float64) {
	for _, pid := range helpers(a.Process.Pid, dir) {
		mib += pss(pid) / 1024
	}
	return mib
}

// cpuTime returns the processor time that a process has used, in milliseconds.
func cpuTime(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64) // in hundredths of a second, as the next
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) * 10
}

package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A node is a running gorun, one of several.
type node struct {
	t    *testing.T
	cmd  *exec.Cmd
	temp string         // its $TMPDIR
	from *os.File       // what it and its workers say, on stdout and stderr; ends when all of them are gone
	said *bufio.Scanner // the same in lines
	text strings.Builder
}

// A release is a file for which the workers of a job wait before they end.
type release string

func newRelease(t *testing.T) release {
	t.Helper()
	return release(filepath.Join(t.TempDir(), "release"))
}

// await returns the command of a shell that waits for the file.
func (r release) await() string { return "until test -e " + string(r) + "; do sleep 0.05; done" }

func (r release) create(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(r), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func startNode(t *testing.T, args ...string) *node { return startNodeFor(t, 2*patience, args...) }

// startNodeFor starts one that is killed after so long.
func startNodeFor(t *testing.T, life time.Duration, args ...string) *node {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAs(t, life, exe, append([]string{"gorun"}, args...)...)
}

// startAs starts a program that becomes gorun, with all its arguments.
func startAs(t *testing.T, life time.Duration, program string, args ...string) *node {
	t.Helper()
	return startBy(t, (*exec.Cmd).Start, life, program, args...)
}

// startBy does that in a way of its own.
func startBy(t *testing.T, start func(*exec.Cmd) error, life time.Duration, program string, args ...string) *node {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }() // the node has its own
	ctx, cancel := context.WithTimeout(t.Context(), life)
	n := &node{t: t, cmd: exec.CommandContext(ctx, program), temp: t.TempDir(), from: from, said: bufio.NewScanner(from)}
	t.Cleanup(func() {
		cancel()
		_ = n.cmd.Wait() // if nothing else has
		_ = from.Close()
	})
	n.cmd.Args = args
	n.cmd.Env = append(os.Environ(), "TMPDIR="+n.temp, raceExitsAtOnce)
	n.cmd.Stdout, n.cmd.Stderr = to, to
	if err := start(n.cmd); err != nil {
		t.Fatal(err)
	}
	return n
}

// next reads a line.
func (n *node) next() bool {
	if !n.said.Scan() {
		return false
	}
	n.text.WriteString(n.said.Text() + "\n")
	return true
}

// expect reads lines until one matches.
func (n *node) expect(pattern string) {
	n.t.Helper()
	for re := regexp.MustCompile(pattern); n.next(); {
		if re.MatchString(n.said.Text()) {
			return
		}
	}
	n.t.Fatalf("%v ends before it says %s; it says\n%s", n.cmd.Args, pattern, n.text.String())
}

// expectAll reads lines until each pattern has matched a line, in any order. A line counts for one pattern.
func (n *node) expectAll(patterns ...string) {
	n.t.Helper()
	for len(patterns) > 0 {
		n.expect(strings.Join(patterns, "|"))
		i := slices.IndexFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(n.said.Text()) })
		patterns = slices.Delete(patterns, i, i+1)
	}
}

func (n *node) signal(sig syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}

// end waits until nothing is left of the node, wants an exit code and no temporary file, and returns all that was said.
func (n *node) end(code int) string {
	n.t.Helper()
	n.endWith(code)
	return n.text.String()
}

// endWith is end for one of several exit codes, which it returns.
func (n *node) endWith(codes ...int) (got int) {
	n.t.Helper()
	for n.next() {
	}
	err := n.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	if got = n.cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) {
		n.t.Errorf("%v: exit code %d, want %d; it says\n%s", n.cmd.Args, got, codes, n.text.String())
	}
	// The guard of a gorun that was killed removes its files when the workers are gone, and says nothing.
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left, err := os.ReadDir(n.temp)
		if err == nil && len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			n.t.Errorf("%v has left %v, %v", n.cmd.Args, left, err)
			break
		}
	}
	return got
}

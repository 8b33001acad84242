package drill

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// How long processes may take to end when they are asked to, and then when they are killed, and how often to check. A busy machine may
// need much longer than an idle one.
const (
	endTimeout = 20 * time.Second
	endPause   = 10 * time.Millisecond
)

// clear ends whatever is left, and returns what that was. Agents and etcds of a scenario that was cut short do not count: clear lets them end
// by themselves until ctx ends, and then kills them. Nor do directories count in which an agent has kept error files for the user.
func (s *testbed) clear(ctx context.Context) (left Leftovers) {
	agents := slices.Collect(maps.Values(s.agents))
	for _, p := range agents {
		p.console.close() // nobody reads it any more
	}
	s.stop(ctx, agents)
	s.stop(ctx, slices.Collect(maps.Values(s.etcds)))
	list := s.processes()
	for begun := time.Now(); len(list) > 0 && time.Since(begun) < endTimeout; list = s.processes() {
		time.Sleep(endPause) // there is no event for the end of a process that is no child
	}
	left.Processes = len(list)
	proc.KillAll(list)
	s.die()
	s.network.Close()
	s.others.Wait()
	for _, p := range s.ports {
		_ = p.Close() // of a descriptor that is open
	}
	if s.network == nil {
		left.Ports = countTaken(strings.Split(s.endpoints, ","))
	}
	if s.memory != nil && !s.memory.remove() {
		left.Files++
	}
	pattern := "*"
	if s.options.Program != nil {
		pattern = "gorun*" // the others are the program's own
	}
	entries, _ := filepath.Glob(filepath.Join(s.temp(), pattern)) // the pattern is good
	for _, entry := range entries {
		if !slices.ContainsFunc(s.errors, func(path string) bool { return strings.HasPrefix(path, entry+"/") }) {
			left.Files++
		}
	}
	return left
}

// stop asks processes to end, unless they have been asked, and kills those that do not.
func (s *testbed) stop(ctx context.Context, list []*process) {
	for _, p := range list {
		if !p.ended && !p.asked {
			_ = errors.Join(s.signal(p, syscall.SIGTERM), s.signal(p, syscall.SIGCONT)) // it may have ended
		}
	}
	limited, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	_ = s.takeUntil(limited, func() bool { return !slices.ContainsFunc(list, func(p *process) bool { return !p.ended }) }) // those that have not ended are killed
	for _, p := range list {
		_ = p.cmd.Process.Kill() // it may have ended
	}
}

// processes finds the processes of the testbed that live. They have the testbed's working directory: guards do not have the environment of
// their agents. The user's own program has another working directory, but it has the environment.
func (s *testbed) processes() (list []proc.Process) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is good
	for _, name := range links {
		if !s.owns(filepath.Dir(name)) {
			continue // another user's, or it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // digits
		p, ok := proc.Read(pid)
		if ok && s.owns(filepath.Dir(name)) { // it is still that process
			list = append(list, p)
		}
	}
	return list
}

// owns reports whether a process is one of the testbed's.
func (s *testbed) owns(process string) bool {
	if cwd, err := os.Readlink(filepath.Join(process, "cwd")); err == nil && cwd == s.dir {
		return true
	}
	if s.options.Program == nil {
		return false
	}
	environ, err := os.ReadFile(filepath.Join(process, "environ"))
	return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), "TMPDIR="+s.temp())
}

// countTaken counts the addresses at which a process listens.
func countTaken(addrs []string) (n int) {
	for _, a := range addrs {
		l, err := net.Listen("tcp", a)
		if err != nil {
			n++
			continue
		}
		_ = l.Close()
	}
	return n
}

package drill

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorun/gorun/launcher/proc"
)

// How long processes may take to end by themselves, and how often to check.
const (
	endTimeout = 5 * time.Second
	endPause   = 10 * time.Millisecond
)

// clear ends whatever is left, and returns what that was. It does not count the agents and etcds of a scenario that was cut short.
func (s *testbed) clear() (left Leftovers) {
	for _, group := range []map[int]*process{s.agents, s.etcds} {
		for _, p := range group {
			_ = p.cmd.Process.Kill() // it may have ended
		}
	}
	list := s.processes()
	for begun := time.Now(); len(list) > 0 && time.Since(begun) < endTimeout; list = s.processes() {
		time.Sleep(endPause) // there is no event for the end of a process that is no child
	}
	left.Processes = len(list)
	proc.KillAll(list)
	s.die()
	for _, p := range s.agents {
		p.console.close()
	}
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
	if s.world.program {
		pattern = "gorun*" // the others are the program's own
	}
	entries, _ := filepath.Glob(filepath.Join(s.temp(), pattern)) // the pattern is good
	left.Files += len(entries)
	return left
}

// processes finds those of the testbed that live. Their working directory is that of the testbed, for guards do not have the environment
// of their agents; that of the user's own program is another one, but it has the environment.
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
	if !s.world.program {
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

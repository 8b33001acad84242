package drill

import (
	"net"
	"os"
	"path/filepath"
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
	list := within(s.dir)
	for begun := time.Now(); len(list) > 0 && time.Since(begun) < endTimeout; list = within(s.dir) {
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
	entries, _ := os.ReadDir(s.temp()) // it is there, unless the testbed never was complete
	left.Files = len(entries)
	return left
}

// within finds the processes whose working directory is dir. All processes of a testbed have it: guards do not have the
// environment of their agents.
func within(dir string) (list []proc.Process) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is good
	for _, name := range links {
		if cwd, err := os.Readlink(name); err != nil || cwd != dir {
			continue // another user's, or it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // digits
		p, ok := proc.Read(pid)
		if again, err := os.Readlink(name); ok && err == nil && again == dir { // it is still that process
			list = append(list, p)
		}
	}
	return list
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

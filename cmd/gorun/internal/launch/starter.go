package launch

import (
	"os/exec"
	"runtime"
	"sync"
)

// A starter starts all processes from one thread, which lives as long as they may: they are killed when it ends.
type starter struct {
	sync.Mutex // of start
	commands   chan *exec.Cmd
	errors     chan error
}

func newStarter() *starter {
	s := &starter{commands: make(chan *exec.Cmd), errors: make(chan error)}
	go func() {
		runtime.LockOSThread()
		for cmd := range s.commands {
			s.errors <- cmd.Start()
		}
	}()
	return s
}

// start starts a process. The mutex is held.
func (s *starter) start(cmd *exec.Cmd) error {
	s.commands <- cmd
	return <-s.errors
}

// close ends the thread, and so all processes that still run.
func (s *starter) close() { close(s.commands) }

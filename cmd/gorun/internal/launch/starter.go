package launch

import (
	"context"
	"os/exec"
	"runtime"
)

// A starter starts all processes from one thread, because the kernel kills them when that thread ends. It ends when the channel is closed.
type starter chan func()

func newStarter() starter {
	s := make(starter)
	go func() {
		runtime.LockOSThread()
		for do := range s {
			do()
		}
	}()
	return s
}

// start starts a process, unless ctx has ended.
func (s starter) start(ctx context.Context, cmd *exec.Cmd) error {
	started := make(chan error, 1)
	s <- func() {
		err := ctx.Err()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}
	return <-started
}

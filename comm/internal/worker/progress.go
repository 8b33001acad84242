package worker

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// ProgressInterval is how often a rank tells its agent of progress.
const ProgressInterval = 250 * time.Millisecond

// progressFile returns the file by which the agent learns of progress in the world of these settings; empty: there is none. A process that a
// worker has started finds the file's name in its environment as well, but its world may be one of its own.
func (c *Config) progressFile() string {
	if !c.isOfRound() {
		return ""
	}
	return os.Getenv("GORUN_PROGRESS_FILE")
}

// reportProgress tells the agent that operations make progress, and answers its questions, until end is called.
func (p *Process) reportProgress(file string, log *slog.Logger) (end func()) {
	server, err := progress.Serve(file, p.status)
	if err != nil {
		log.Warn("the agent cannot ask this rank what it waits for", "error", err)
	}
	stop := everyInterval(p.touchOnProgress(file, log))
	return func() {
		stop()
		if server != nil {
			server.Close()
		}
	}
}

// touchOnProgress returns a function that touches the file if operations of a world have gone on since its last call. To look for that from
// time to time costs the operations nothing. When the round is over, operations end, but that is no progress: the agent would take it for
// progress in the next round.
func (p *Process) touchOnProgress(file string, log *slog.Logger) func() {
	var last uint64
	failed := false
	return func() {
		moves := p.moves()
		if moves == last || p.isOver() {
			return
		}
		last = moves
		if err := progress.Touch(file); err != nil && !failed {
			failed = true
			log.Warn("cannot tell the agent of progress", "error", err)
		}
	}
}

// isOver reports whether the agent has said that the round is over.
func (p *Process) isOver() bool {
	rounds := p.membership()
	return rounds != nil && rounds.Round().Over() != nil
}

// moves is a number that changes when an operation of a world of this process goes on.
func (p *Process) moves() (sum uint64) {
	for _, w := range p.open() {
		sum += w.Endpoint.Moves()
	}
	return sum
}

// reportWaiting reports progress until end is called: a rank that waits for others to join does not hang, and has a timeout of its own.
func reportWaiting(file string) (end func()) {
	if file == "" {
		return func() {}
	}
	return everyInterval(func() { _ = progress.Touch(file) }) // if it fails, that is logged later
}

// everyInterval calls do now, and again after each ProgressInterval, in a goroutine of its own. It stops when end is called, which waits for do.
func everyInterval(do func()) (end func()) {
	quit := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		again := time.NewTicker(ProgressInterval)
		defer again.Stop()
		for {
			do()
			select {
			case <-again.C:
			case <-quit:
				return
			}
		}
	})
	return func() {
		close(quit)
		calls.Wait()
	}
}

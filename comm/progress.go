package comm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// onProgress are the worlds that tell the agent of this process that operations make progress, and answer its questions,
// if the agent wants to know (gorun --hang-timeout).
var onProgress users

const (
	progressInterval = 250 * time.Millisecond
	maxStacks        = 1 << 20 // bytes
	leastPaces       = 16      // how many times between collectives make a pace
)

// progressFile returns the file by which the agent learns of progress in the world of these settings; empty: there is none. A process that a
// worker has started finds the file's name in its environment as well, but its world may be one of its own.
func (c *config) progressFile() string {
	if !c.isOfRound() {
		return ""
	}
	return os.Getenv("GORUN_PROGRESS_FILE")
}

// reportProgress reports until end is called.
func reportProgress(g *Group, file string) (end func()) {
	server, err := progress.Serve(file, status)
	if err != nil {
		g.world.Log.Warn("the agent cannot ask this rank what it waits for", "error", err)
	}
	stop := everyInterval(touchOnProgress(g, file))
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
func touchOnProgress(g *Group, file string) func() {
	var last uint64
	failed := false
	return func() {
		moves := worldMoves()
		if moves == last || g.world.isOver() {
			return
		}
		last = moves
		if err := progress.Touch(file); err != nil && !failed {
			failed = true
			g.world.Log.Warn("cannot tell the agent of progress", "error", err)
		}
	}
}

// reportWaiting reports progress until end is called: a rank that waits for others to join does not hang, and has a timeout of its own.
func reportWaiting(file string) (end func()) {
	if file == "" {
		return func() {}
	}
	return everyInterval(func() { _ = progress.Touch(file) }) // if it fails, that is logged later
}

// everyInterval calls do now, and again after each progressInterval, in a goroutine of its own. It stops when end is called, which waits for do.
func everyInterval(do func()) (end func()) {
	quit := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		again := time.NewTicker(progressInterval)
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

// worldMoves is a number that changes when an operation of a world of this process goes on.
func worldMoves() (sum uint64) {
	for _, g := range open.all() {
		if sum += g.core.Moves(); g.isWorld {
			sum += g.world.Endpoint.Moves()
		}
	}
	return sum
}

// status returns what this process says of itself.
func status(stacks bool) *progress.Status {
	s := &progress.Status{Pid: os.Getpid()}
	if g := latest.Load(); g != nil {
		report, isBusy, isStalled := g.core.Comm.Status()
		s.Rank, s.Operation, s.Stalled, s.Activity = g.Rank(), isBusy, isStalled, report.Activity.String()
		for _, w := range report.Chain {
			s.Waits = append(s.Waits, progress.Wait(w))
		}
		if report.Suspect != nil {
			s.Suspect = &progress.Suspect{Rank: report.Suspect.Rank, Text: report.Suspect.String()}
		}
	}
	s.Pace, s.Collectives = pace(), recentCollectives()
	if !stacks {
		return s
	}
	text := make([]byte, maxStacks)
	s.Stacks = string(text[:runtime.Stack(text, true)])
	var flights bytes.Buffer
	_ = WriteFlight(&flights) // to memory: cannot fail
	for line := range bytes.Lines(flights.Bytes()) {
		s.Flights = append(s.Flights, json.RawMessage(bytes.TrimSpace(line)))
	}
	return s
}

// recentCollectives returns what the last collectives of all groups move; nil: there was none.
func recentCollectives() *progress.Collectives {
	var sum progress.Collectives
	for _, g := range open.all() {
		if calls, sent, received, over := g.core.Comm.Recent(); over > 0 {
			sum.PerSecond += float64(calls) / over.Seconds()
			sum.SentPerSecond += float64(sent) / over.Seconds()
			sum.ReceivedPerSecond += float64(received) / over.Seconds()
		}
	}
	if sum.PerSecond == 0 {
		return nil
	}
	return &sum
}

// pace returns the pace of the group with the most collectives; nil: there were too few.
func pace() (most *progress.Pace) {
	for _, g := range open.all() {
		between, samples, calls := g.core.Comm.Pace()
		if samples >= leastPaces && (most == nil || calls > most.Operations) {
			ranks := fnv.New64a()
			_, _ = fmt.Fprint(ranks, g.Ranks()) // to a hash: cannot fail
			most = &progress.Pace{Group: strconv.FormatUint(ranks.Sum64(), 16), Operations: calls, Between: between, Samples: samples}
		}
	}
	return most
}

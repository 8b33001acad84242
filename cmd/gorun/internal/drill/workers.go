package drill

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// A worker is a process in one round, in which it has sent its first message.
type worker struct {
	place
	process        *os.Process
	conn           net.Conn // to it
	since          time.Time
	previous, next *worker // the same process in the previous round and in the next one; nil: it was or is in none
	computations   int
	goroutines     int    // how many it had at the last of these
	first, state   int    // the state after the first computation in this round, and after the last one that it has reported
	failure        string // why it cannot compute any more; empty: it can
	death          *death // the death that this failure names; nil: it names none
	stopping       bool   // it got SIGTERM
	gone           bool
}

// inRound returns the same process in another round.
func (k *worker) inRound(p place) *worker {
	return &worker{place: p, process: k.process, conn: k.conn, previous: k}
}

// last is the same process in the last round that it has been in.
func (k *worker) last() *worker {
	for k.next != nil {
		k = k.next
	}
	return k
}

// say sends a line to the worker.
func (k *worker) say(line string) error {
	_, err := fmt.Fprintln(k.conn, line)
	return err
}

// isAlive reports whether its process has not ended.
func (k *worker) isAlive() bool { return k.process.Signal(syscall.Signal(0)) == nil }

func (k *worker) String() string {
	return fmt.Sprintf("rank %d on node %d in round %d", k.Rank, k.Node, k.Round)
}

// busy reports whether the worker computes, as far as the drill knows.
func (k *worker) busy() bool {
	return k.computations > 0 && k.failure == "" && !k.stopping && !k.gone && k.next == nil
}

// compute records that the worker has computed, what state it is in now, and how many goroutines it has. It returns an error if the state
// goes backwards.
func (k *worker) compute(state, goroutines int) (err error) {
	if state < k.state {
		err = fmt.Errorf("%v is in state %d, where it was in state %d before", k, state, k.state)
	}
	if k.computations == 0 {
		k.first = state
	}
	k.computations++
	k.state, k.goroutines = state, goroutines
	return err
}

// span is its part in the timeline.
func (k *worker) span(state State) Span {
	return Span{State: state, Pid: k.Pid, Round: k.Round, Rank: &k.Rank}
}

package comm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
)

// ErrClosed is wrapped by errors of calls on a group that this rank has closed.
var ErrClosed = endpoint.ErrClosed

// ErrTimeout is wrapped by errors of operations that took longer than the group's timeout.
var ErrTimeout = diagnosis.ErrTimeout

// A PeerError says that an operation failed because of another rank: it died, left, was cut off, or did not answer
// in time. The group has failed then, and stays so, but for two cases in which the call fails alone: a receive or probe that
// nothing has matched when its time is up, and a message to or from a rank that has closed the group.
type PeerError struct {
	Rank int    // world rank at fault
	Host string // where it runs
	PID  int    // its process there
	Op   string // the operation that failed here, such as "AllReduce"
	Seq  uint64 // its number among the group's collectives, or among this rank's point-to-point calls on the group
	Err  error  // what happened

	Addr   string // host and port at which this rank got no answer from it; empty: it answered, or another rank found it out
	Finder int    // world rank that found it out
	told   bool   // it is another one than this
}

func (e *PeerError) Error() string {
	where := ""
	if e.Host != "" {
		where = fmt.Sprintf(" (pid %d on %s)", e.PID, e.Host)
	}
	return fmt.Sprintf("comm: %s #%d: %srank %d%s: %v", e.Op, e.Seq, found(e.told, e.Finder), e.Rank, where, e.Err)
}

// found begins what another rank has found out.
func found(told bool, finder int) string {
	if !told {
		return ""
	}
	return fmt.Sprintf("rank %d found: ", finder)
}

func (e *PeerError) Unwrap() error { return e.Err }

// An AbortError says that a member gave the group up: it called Abort, cancelled an operation under way, or found this very rank at
// fault, which need not agree; or an operation of NewOp or a codec of its program panicked in a collective, or ended its goroutine.
type AbortError struct {
	Rank int // world rank that gave up
	Op   string
	Seq  uint64
	Err  error // its reason

	own     bool // it is this rank
	accused bool // it found this rank at fault
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("comm: %s #%d: rank %d aborted the group: %v", e.Op, e.Seq, e.Rank, e.Err)
}

func (e *AbortError) Unwrap() error { return e.Err }

// A MissingRanksError says which ranks did not call [Init], or [MonitoredBarrier], in time.
type MissingRanksError struct {
	Missing []int  // world ranks
	Waits   []Wait // of those that wait in another call; For is who holds them up
	Size    int    // ranks in the world, or in the group
	Where   string
	After   time.Duration // how long they were waited for
	Err     error

	group *core.Group // of a barrier
}

func (e *MissingRanksError) Error() string {
	var idle, held []string // those that are held up by others come last
	for _, r := range e.Missing {
		name := fmt.Sprint(r)
		if g := e.group; g != nil {
			who := g.World.Peers[r]
			name += fmt.Sprintf(" (group rank %d, pid %d on %s)", g.GroupRank(r), who.PID, who.Host)
		}
		if i := slices.IndexFunc(e.Waits, func(w Wait) bool { return w.Rank == r }); i >= 0 {
			held = append(held, fmt.Sprintf("%s, which waits for rank %d in %s", name, e.Waits[i].For, e.Waits[i].In))
		} else {
			idle = append(idle, name)
		}
	}
	return fmt.Sprintf("%d of %d ranks came to %s within %v: missing rank %s",
		e.Size-len(e.Missing), e.Size, e.Where, e.After.Round(time.Millisecond), strings.Join(slices.Concat(idle, held), ", "))
}

func (e *MissingRanksError) Unwrap() error { return e.Err }

// A MismatchError says that ranks which should have made the same call made different ones, or gave lengths that do not fit
// together. After a collective every member gets it: a rank whose own part had ended well before that was found, from its next call
// or from [Group.Close]. What ranks tell each other in a collective tells of all calls that they have made on the group, so that a
// difference shows when they next meet. After a message of another element type only the receiver gets it, and the group goes on.
type MismatchError struct {
	Op    string // what this rank called
	Seq   uint64
	Calls []RankCall // two ranks that differ, in order of rank

	// The first calls that differ are between First and Last, as the group's collectives are numbered: where the two are equal,
	// they are Calls, else those are where the difference was found. Both are 0 for a message.
	First, Last uint64
}

// A RankCall is what one rank called.
type RankCall struct {
	Rank int    // world rank
	Call string // such as "AllReduce(float32 × 8, Sum)"
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "comm: %s #%d: ", e.Op, e.Seq)
	switch {
	case e.First < e.Last:
		fmt.Fprintf(&b, "calls do not match since one of #%d to #%d: ", e.First, e.Last)
	case e.First == 0 || e.First == e.Seq:
		b.WriteString("calls do not match: ")
	default:
		fmt.Fprintf(&b, "calls #%d do not match: ", e.First)
	}
	for i, c := range e.Calls {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "rank %d %s", c.Rank, c.Call)
	}
	return b.String()
}

// A DeadlockError says that ranks wait for each other in a circle, and did until the time of one was up.
type DeadlockError struct {
	Op    string // what this rank called
	Seq   uint64
	Waits []Wait // each rank waits for the next one's, the last for the first
	Err   error  // wraps ErrTimeout
}

// A Wait is one rank's for another.
type Wait struct {
	Rank int    // world rank that waits
	For  int    // world rank that it waits for
	In   string // its call, such as "Recv #3"
}

func (e *DeadlockError) Error() string { return fmt.Sprintf("comm: %s #%d: %v", e.Op, e.Seq, e.Err) }

func (e *DeadlockError) Unwrap() error { return e.Err }

// A TruncateError says that a message was longer than the buffer of the receive that matched it. The message is
// lost; the group goes on.
type TruncateError struct {
	Source    int // world rank
	Got, Room int // elements of the message and of the buffer
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("comm: Recv: message of %d elements from rank %d does not fit into %d", e.Got, e.Source, e.Room)
}

// An ArgumentError says that a call was wrong in itself. Nothing was sent, and the group goes on. Of [Init] it says that
// options or environment are wrong, or do not go with those of the other ranks.
type ArgumentError struct {
	Op  string // the call
	Err error  // what is wrong with it
}

func (e *ArgumentError) Error() string { return fmt.Sprintf("comm: %s: %v", e.Op, e.Err) }

func (e *ArgumentError) Unwrap() error { return e.Err }

// An ObjectError says that the object of a rank could not be encoded there, which every rank of the call gets to know, or
// not be decoded here. The group goes on.
type ObjectError struct {
	Rank int // world rank whose object it is
	Op   string
	Seq  uint64
	Err  error // what is wrong with it
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("comm: %s #%d: object of rank %d: %v", e.Op, e.Seq, e.Rank, e.Err)
}

func (e *ObjectError) Unwrap() error { return e.Err }

func badArgument(op, format string, args ...any) error {
	return &ArgumentError{Op: op, Err: fmt.Errorf(format, args...)}
}

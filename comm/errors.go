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

// A RankError is an error that blames a rank: a [PeerError], an [AbortError], a [MissingRanksError] or an [ObjectError].
type RankError interface {
	error
	FailedRank() int // world rank; the first one of a MissingRanksError, which has all
}

// callName is the name of a call in an error. seq is its number in the group; 0: it has none.
func callName(op string, seq uint64) string {
	if seq == 0 {
		return op
	}
	return fmt.Sprintf("%s #%d", op, seq)
}

// A PeerError says that an operation failed because of another rank: it died, left, was cut off, or did not answer in
// time. Then the group has failed, and stays failed. There are two cases in which only the call fails: a receive or
// probe times out and no message has matched it, or the other rank of a message has closed the group.
type PeerError struct {
	Rank int    // world rank at fault
	Host string // where it runs
	PID  int    // its process there
	Op   string // the operation that failed here, such as "AllReduce"
	Seq  uint64 // its number among the group's collectives, or among this rank's point-to-point calls on the group
	Err  error  // what happened

	Death  *Death // how its process ended, if its agent has said so; see Rejoin. nil: not known
	Addr   string // host and port at which it did not answer this rank, or another one of this machine; empty: it answered
	Finder int    // world rank that found the fault
	remote bool   // Finder is another rank than this one
}

func (e *PeerError) Error() string {
	where := ""
	if e.Host != "" {
		where = fmt.Sprintf(" (pid %d on %s)", e.PID, e.Host)
	}
	return fmt.Sprintf("comm: %s: %srank %d%s: %v", callName(e.Op, e.Seq), found(e.remote, e.Finder), e.Rank, where, e.Err)
}

// found begins the message of an error that another rank has found.
func found(remote bool, finder int) string {
	if !remote {
		return ""
	}
	return fmt.Sprintf("rank %d found: ", finder)
}

func (e *PeerError) Unwrap() error { return e.Err }

// FailedRank is Rank.
func (e *PeerError) FailedRank() int { return e.Rank }

// An AbortError says that a member aborted the group: it called Abort, it cancelled an operation under way, or it found
// this rank at fault, which this rank need not agree with. Or an operation of NewOp or a codec of its program panicked
// in a collective, or ended its goroutine.
type AbortError struct {
	Rank int // world rank that aborted the group
	Op   string
	Seq  uint64
	Err  error // its reason

	own         bool // Rank is this rank
	selfAtFault bool // Rank found this rank at fault
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("comm: %s: rank %d aborted the group: %v", callName(e.Op, e.Seq), e.Rank, e.Err)
}

func (e *AbortError) Unwrap() error { return e.Err }

// FailedRank is Rank.
func (e *AbortError) FailedRank() int { return e.Rank }

// A MissingRanksError says which ranks did not call [Init], [Rejoin] or [MonitoredBarrier] in time. If it names only
// rank 0, others may be missing too: rank 0 serves the store in which ranks meet.
type MissingRanksError struct {
	Missing []int         // world ranks
	Waits   []Wait        // of missing ranks that wait in another call
	Size    int           // ranks in the world, or in the group
	Where   string        // what they did not come to
	After   time.Duration // how long this rank has waited for them
	Err     error

	group   *core.Group // of a barrier
	onlyErr bool        // Error is that of Err: nobody knows how many have come
}

func (e *MissingRanksError) Error() string {
	if e.onlyErr {
		return e.Err.Error()
	}
	var idle, held []string // those that wait for others come last
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

// FailedRank is the first rank that is missing and does not wait in another call, or else the first that is missing.
func (e *MissingRanksError) FailedRank() int {
	waits := func(rank int) bool { return slices.ContainsFunc(e.Waits, func(w Wait) bool { return w.Rank == rank }) }
	for _, r := range e.Missing {
		if !waits(r) {
			return r
		}
	}
	return e.Missing[0]
}

// A MismatchError says that ranks which should have made the same call made different ones, or passed lengths that do
// not match. After a collective every member gets it. A rank whose own call had ended without error before the mismatch
// was found gets it from its next call or from [Group.Close]. What ranks send in a collective carries a hash of all
// their calls on the group, so they find a difference the next time they communicate. After a message of another
// element type only the receiver gets it, and the group continues.
type MismatchError struct {
	Op    string // what this rank called
	Seq   uint64
	Calls []RankCall // two ranks that differ, in order of rank

	// The first calls that differ have numbers from First to Last among the group's collectives. If First is Last,
	// Calls are these calls. Otherwise Calls are those in which the difference was found. Both are 0 for a message.
	First, Last uint64
}

// A RankCall is what one rank called.
type RankCall struct {
	Rank int    // world rank
	Call string // such as "AllReduce(float32 × 8, Sum)"
}

func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "comm: %s: ", callName(e.Op, e.Seq))
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

// A DeadlockError says that ranks waited for each other in a circle until one of them timed out.
type DeadlockError struct {
	Op    string // what this rank called
	Seq   uint64
	Waits []Wait // each rank waits for the rank of the next Wait, the last one for the first
	Err   error  // wraps ErrTimeout
}

// A Wait says that one rank waits for another.
type Wait struct {
	Rank int    // world rank that waits
	For  int    // world rank that it waits for
	In   string // its call, such as "Recv #3"
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("comm: %s: %v", callName(e.Op, e.Seq), e.Err)
}

func (e *DeadlockError) Unwrap() error { return e.Err }

// A TruncateError says that a message was longer than the buffer of the receive that matched it. The message is lost.
// The group continues.
type TruncateError struct {
	Source    int // world rank
	Got, Room int // elements of the message and of the buffer
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("comm: Recv: message of %d elements from rank %d does not fit into %d", e.Got, e.Source, e.Room)
}

// An ArgumentError says that the arguments of a call were wrong. Nothing was sent, and the group continues. From [Init]
// it says that options or environment are wrong, or do not match those of the other ranks.
type ArgumentError struct {
	Op  string // the call
	Err error  // what is wrong with it
}

func (e *ArgumentError) Error() string { return fmt.Sprintf("comm: %s: %v", e.Op, e.Err) }

func (e *ArgumentError) Unwrap() error { return e.Err }

// A NoRejoinError says that this process cannot rejoin, because the launcher of these workers ends them all when one
// fails. It does not wrap the failure, so that a loop which calls [Rejoin] after every failure ends. [ExitCode] returns
// the exit code of the failure, so that gorun starts the workers again, as if the program had not called Rejoin.
type NoRejoinError struct {
	Why   error // why this process cannot rejoin
	After error // the last failure of a call, or of Init
}

func (e *NoRejoinError) Error() string { return fmt.Sprintf("%v (comm: Rejoin: %v)", e.After, e.Why) }

// An ObjectError says that the object of a rank could not be encoded there, or could not be decoded here. If it could
// not be encoded, every rank of the call gets the error. The group continues.
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

// FailedRank is Rank.
func (e *ObjectError) FailedRank() int { return e.Rank }

func badArgument(op, format string, args ...any) error {
	return &ArgumentError{Op: op, Err: fmt.Errorf(format, args...)}
}

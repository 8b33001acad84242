package diagnosis

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
)

// What a broken stream says of the peer.
func TestLost(t *testing.T) {
	recent := Cause{Failure: &Failure{Kind: PeerFailed, Rank: 3, Text: "died"}, At: epoch.Add(-time.Second)}
	refused := fmt.Errorf("cannot be reached: %w", syscall.ECONNREFUSED)
	for name, c := range map[string]struct {
		lost Lost
		err  error
		want string
		kind Kind
	}{
		"left":           {Lost{HasLeft: true, WasUp: true}, io.EOF, "rank 1: has left (closed its world)", Closed},
		"left because":   {Lost{HasLeft: true, WasUp: true, Cause: recent}, io.EOF, "rank 3: died", Closed},
		"no descriptor":  {Lost{}, fmt.Errorf("dial: %w", syscall.EMFILE), "rank 0: it has no descriptor left to reach rank 1: dial: too many open files", Aborted},
		"ended":          {Lost{WasUp: true}, io.ErrUnexpectedEOF, "rank 1: the connection to it was lost (closed without goodbye)", PeerFailed},
		"reset":          {Lost{WasUp: true}, syscall.ECONNRESET, "rank 1: the connection to it was lost (reset)", PeerFailed},
		"no answer":      {Lost{WasUp: true}, syscall.ETIMEDOUT, "rank 1: the connection to it was lost (its machine did not answer for half a minute)", PeerFailed},
		"another error":  {Lost{WasUp: true}, errors.New("odd"), "rank 1: odd", PeerFailed},
		"never up":       {Lost{}, fmt.Errorf("cannot be reached: %w", syscall.EHOSTUNREACH), "rank 1: cannot be reached: no route to host", PeerFailed},
		"refused":        {Lost{}, refused, "rank 1: nobody listens at its address: it left, or died", PeerFailed},
		"refused, alive": {Lost{Liveness: Alive}, refused, "rank 1: has left (closed its world)", Closed},
		"refused, dead":  {Lost{Liveness: Dead}, refused, "rank 1: its process has ended: it left, or died", PeerFailed},
		"dead":           {Lost{WasUp: true, Liveness: Dead, LastWait: "; it waited"}, io.EOF, "rank 1: died; it waited", PeerFailed},
		"alive":          {Lost{WasUp: true, Liveness: Alive, LastWait: "; it waited"}, syscall.EPIPE, "rank 1: the connection to it was lost (reset), though its process still runs", PeerFailed},
		"suspected":      {Lost{WasUp: true, Suspicion: "the MTU"}, syscall.EPIPE, "rank 1: the connection to it was lost (reset): the MTU", PeerFailed},
		"waited":         {Lost{WasUp: true, LastWait: "; it waited"}, syscall.EPIPE, "rank 1: the connection to it was lost (reset); it waited", PeerFailed},
		"because":        {Lost{WasUp: true, Liveness: Dead, Cause: recent}, io.EOF, "rank 3: died", PeerFailed},
		"broke protocol": {Lost{WasUp: true, Liveness: Dead, Cause: recent}, ProtocolError{errors.New("odd frame")}, "rank 1: broke the protocol: odd frame", PeerFailed},
	} {
		t.Run(name, func(t *testing.T) {
			c.lost.Rank = 1
			if f := c.lost.Failure(0, c.err, epoch); f.Error() != c.want || f.Kind != c.kind {
				t.Errorf("got %s: %v\nwant %s: %v", f.Kind, f, c.kind, c.want)
			}
		})
	}
}

// A failure is a cause of what follows soon, and of others' ends only.
func TestRootOf(t *testing.T) {
	gone := &Failure{Kind: PeerFailed, Rank: 1, Text: "died"}
	for _, c := range []struct {
		cause *Failure
		after time.Duration
		want  string
	}{
		{nil, 0, "rank 1: died"},
		{&Failure{Kind: PeerFailed, Rank: 3, Text: "died"}, causeTime - 1, "rank 3: died"},
		{&Failure{Kind: PeerFailed, Rank: 3, Text: "died"}, causeTime, "rank 1: died"},
		{&Failure{Kind: Closed, Rank: 3, Text: "has left"}, 0, "rank 3: has left"},
		{&Failure{Kind: Aborted, Rank: 3, Text: "enough"}, 0, "rank 3: aborted another group: enough"},
		{&Failure{Kind: Deadlocked, Rank: 3, Text: "deadlock"}, 0, "rank 1: died; on another group it had failed before: rank 3: deadlock"},
		{&Failure{Kind: Absent, Text: "Barrier #1", Missing: []int{2}}, 0, "rank 1: died; on another group it had failed before: ranks [2] have not come to Barrier #1"},
	} {
		cause := Cause{Failure: c.cause, At: epoch}
		if got := cause.RootOf(gone, epoch.Add(c.after)); got.Kind != PeerFailed || got.Error() != c.want {
			t.Errorf("because of %v, %v later: got %v, want %s", c.cause, c.after, got, c.want)
		}
	}
}

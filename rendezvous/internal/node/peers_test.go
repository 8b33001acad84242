package node

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

func dialError(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

// TestWhatIsUnreachable: that a call fails is held against the other one only if it is for what lies between.
func TestWhatIsUnreachable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{dialError(os.ErrDeadlineExceeded), true},
		{dialError(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), true},
		{dialError(os.NewSyscallError("connect", syscall.EINVAL)), true}, // of a route that is a black hole
		{dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED)), true},
		{dialError(&net.DNSError{IsNotFound: true}), true},
		{dialError(&net.DNSError{IsTemporary: true}), false},
		{dialError(os.NewSyscallError("socket", syscall.EMFILE)), false},
		{dialError(os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)), false},
		{context.DeadlineExceeded, false}, // its process accepts calls and says nothing
		{io.EOF, false},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, false},
	} {
		if got := isUnreachable(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}

// TestEvidence: a node is said to be unreachable that was there and has given no sign for half a minute. Of one that never was
// people are told.
func TestEvidence(t *testing.T) {
	begun := time.Now()
	type step struct {
		after     time.Duration
		err       error
		unreached bool
		tell      bool
	}
	const sec = time.Second
	silence := dialError(os.ErrDeadlineExceeded)
	for name, c := range map[string]struct {
		worker bool
		steps  []step
	}{
		"never there":                  {false, []step{{0, silence, false, false}, {4 * sec, silence, false, false}, {5 * sec, silence, false, true}, {time.Hour, silence, false, false}}},
		"late":                         {false, []step{{9 * sec, silence, false, true}, {10 * sec, nil, false, false}, {11 * sec, silence, false, false}}},
		"a short outage":               {false, []step{{0, nil, false, false}, {9 * sec, silence, false, false}, {29 * sec, silence, false, false}, {31 * sec, nil, false, false}}},
		"a long one":                   {false, []step{{0, nil, false, false}, {30 * sec, silence, true, true}, {40 * sec, silence, true, false}, {50 * sec, nil, false, false}}},
		"again":                        {false, []step{{0, nil, false, false}, {30 * sec, silence, true, true}, {40 * sec, nil, false, false}, {69 * sec, silence, false, false}, {70 * sec, silence, true, true}}},
		"it accepts, and says nothing": {false, []step{{0, nil, false, false}, {time.Hour, context.DeadlineExceeded, false, false}}},
		"a sign of the past":           {false, []step{{40 * sec, nil, false, false}, {10 * sec, nil, false, false}, {69 * sec, silence, false, false}}},
		"a worker could not either":    {true, []step{{0, silence, true, true}, {sec, silence, true, false}, {2 * sec, nil, false, false}}},
	} {
		p := &peer{begun: begun, worker: c.worker}
		for i, s := range c.steps {
			if warn := p.observe(begun.Add(s.after), s.err); warn != s.tell || p.unreached != s.unreached {
				t.Errorf("%s, step %d: unreached: %t, told: %t; want %t, %t", name, i, p.unreached, warn, s.unreached, s.tell)
			}
		}
	}
}

// TestWorkersNameUnreached: where a worker got no answer its agent calls as well. If it gets none either, the next round is without
// one of the two, and no restart is used up; it comes back when somebody answers there. Otherwise the worker has failed like any
// other.
func TestWorkersNameUnreached(t *testing.T) {
	t.Parallel()
	const worker = "n2.test:4711"
	for name, answers := range map[string]bool{"no answer": false, "an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answering atomic.Bool
			answering.Store(answers)
			j := newJob(t, startServer(t).client(), 2, 3)
			j.config.Lease = 3 * time.Second
			j.config.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				switch {
				case addr != worker:
					return dial(ctx, network, addr)
				case answering.Load():
					return nil, dialError(syscall.ECONNREFUSED) // that worker has ended
				}
				return nil, dialError(syscall.EHOSTUNREACH)
			}
			reasons := make(chan string, 100)
			agents := []*agent{j.agent("n0", nil), j.agent("n1", nil), j.agent("n2", func(c *Config) { c.Waiting = func(reason string) { reasons <- reason } })}
			for i, a := range agents {
				a.node.NodeRank = i
			}
			rounds := together(t, agents)
			agents[0].report(rounds[0], failure(agents[0], 0, 1)) // since it needs the other two
			f := failure(agents[1], 1, 1)
			f.Unreachable = []rendezvous.Peer{{Rank: 2, Addr: worker}, {Rank: 1, Addr: worker}, {Rank: 99, Addr: "n0.test:1"}, {Rank: -1, Addr: worker}}
			agents[1].report(rounds[1], f)
			wantNewRound(t, rounds)
			if answers {
				if r := together(t, agents)[0]; r.ID != 2 || r.Size != 3 || r.Restarts != 1 {
					t.Errorf("the round is %s", show(r))
				}
				return
			}
			back := later(agents[2])
			rounds = together(t, agents[:2])
			want := "n1 on n1.test cannot reach n2 on n2.test at " + worker + "; going on without n2 on n2.test until they reach each other"
			if r := rounds[0]; r.ID != 2 || r.Size != 2 || r.Restarts != 0 || !strings.HasPrefix(r.Why, want) {
				t.Errorf("the round is %s", show(r))
			}
			hear(t, reasons, "round 2 is running with 2 of 2 to 3 nodes; n1 on n1.test cannot reach n2 on n2.test at "+worker)
			answering.Store(true)
			wantNewRound(t, rounds)
			same(t, append(together(t, agents[:2]), back(t)))
		})
	}
}

// TestNothingIsToldInAnOutage: a node that cannot use etcd may be the one that is cut off. What it has told before stays.
func TestNothingIsToldInAnOutage(t *testing.T) {
	silence := dialError(os.ErrDeadlineExceeded)
	old := time.Now()
	m := idle()
	b := &m.member
	b.claimed = []unreachedDoc{{Key: "told", Addr: "told:1"}}
	m.conn.outage, m.now = old.Add(-time.Minute), old
	for _, key := range []string{"told", "untold", "lost"} {
		b.peers[key] = &peer{key: key, addr: key + ":1", lastSeen: old.Add(-time.Hour), unreached: key == "told"}
	}
	heard := func(key string, at time.Time, err error) { peerObserved{key, at, err}.apply(m) }
	heard("untold", old, silence)
	b.peers["lost"].unreached = true // before the outage was noticed
	if got := b.unreached(); len(got) != 2 {
		t.Errorf("in the outage: %+v", got)
	}
	m.now = old.Add(time.Second)
	m.conn.onUsable()
	b.onUsable()
	heard("untold", old, silence) // a call that began in the outage
	if got := b.unreached(); len(got) != 1 || got[0].Key != "told" {
		t.Errorf("after it: %+v", got)
	}
	heard("lost", old.Add(time.Second), silence)
	if got := b.unreached(); len(got) != 2 || got[0] != (unreachedDoc{"lost", "lost:1"}) {
		t.Errorf("when that is found out again: %+v", got)
	}
	heard("told", old.Add(time.Second), nil)
	if got := b.unreached(); len(got) != 1 || got[0].Key != "lost" {
		t.Errorf("when one of them is reached: %+v", got)
	}
}

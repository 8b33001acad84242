package tcp

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// onHost is a transport of which the sockets are a host's.
type onHost struct {
	*Transport
	host *hosttest.Host
}

func (o onHost) Dial(ctx context.Context, rank int) (conn net.Conn, err error) {
	o.host.Do(func() { conn, err = o.Transport.Dial(ctx, rank) })
	return conn, err
}

// between is the transports of a world with one rank on each of two hosts.
func between(t *testing.T, w *hosttest.Network) [2]transport.Transport {
	lns, addrs := make([]net.Listener, 2), make([]string, 2)
	for r := range lns {
		var err error
		w.Host(r).Do(func() { lns[r], err = net.Listen("tcp", w.Host(r).Addr+":0") })
		if err != nil {
			t.Fatal(err)
		}
		addrs[r] = lns[r].Addr().String()
	}
	var trs [2]transport.Transport
	for r := range trs {
		trs[r] = onHost{New(lns[r], Config{Rank: r, Peers: addrs, Token: []byte("secret"), Connections: 1}), w.Host(r)}
	}
	return trs
}

// A pair is both ends of a stream between hosts.
type pair struct {
	ends  [2]*endpoint.Endpoint
	comms [2]*endpoint.Communicator
}

// connect makes a pair, which ends with the test.
func connect(t *testing.T, trs [2]transport.Transport, log *slog.Logger) (p pair) {
	for r, tr := range trs {
		p.ends[r] = endpoint.New(tr, r, 2, endpoint.Options{Log: log})
		log = nil // it is that of rank 0
		t.Cleanup(func() { _ = p.ends[r].Close() })
		l, err := p.ends[r].Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		p.comms[r] = l
	}
	s, r := p.comms[0].Send(1, 1, 0, call.Call{}, []byte{1}), p.comms[1].Recv(0, 1, 0, call.Call{}, make([]byte, 1))
	for _, op := range []*endpoint.Op{s, r} {
		if err := op.Wait(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// A host that vanishes is noticed after half a minute, whatever ranks do meanwhile; or within a minute, if it had no
// room for what is sent: then the kernel looks at the time only when it sends again, which it does 25 s and 51 s after
// the last answer, or later if answers have been slow.
func TestAVanishedHost(t *testing.T) {
	t.Parallel()
	w := hosttest.New(t, 2)
	w.Limit(1, "20mbit", 64<<10)
	const long = 32 << 20 // bytes; they take 13 s at this rate
	var start time.Time
	cut, all := make(chan struct{}), sync.WaitGroup{}
	for what, begin := range map[string]func(p pair) *endpoint.Op{
		"wait": func(p pair) *endpoint.Op {
			go func() { _ = p.comms[1].Recv(0, 9, 0, call.Call{}, nil).Wait(t.Context(), 0) }()
			return p.comms[0].Recv(1, 9, 0, call.Call{}, nil)
		},
		"send": func(p pair) *endpoint.Op {
			go func() { _ = p.comms[1].Recv(0, 9, 0, call.Call{}, make([]byte, long)).Wait(t.Context(), 0) }()
			return p.comms[0].Send(1, 9, 0, call.Call{}, make([]byte, long))
		},
		"do neither": func(p pair) *endpoint.Op {
			<-cut
			time.Sleep(40 * time.Second) // by when it is known
			return p.comms[0].Recv(1, 9, 0, call.Call{}, nil)
		},
	} {
		p := connect(t, between(t, w), nil)
		all.Go(func() {
			err := begin(p).Wait(t.Context(), 0)
			<-cut // start is known
			t.Logf("ranks that %s notice after %v: %v", what, time.Since(start), err)
			if took := time.Since(start); took < 25*time.Second || took > 150*time.Second {
				t.Errorf("ranks that %s notice after %v", what, took)
			}
			wantLost(t, err)
		})
	}
	time.Sleep(time.Second) // so that they are at it
	w.Cut(1)
	start = time.Now()
	close(cut)
	all.Wait()
}

// A machine that never answers is given up after half a minute, however long the caller would wait.
func TestAMachineThatNeverAnswers(t *testing.T) {
	testkit.Nightly(t, "it takes half a minute")
	t.Parallel()
	w := hosttest.New(t, 2)
	trs := between(t, w)
	w.Cut(1)
	start := time.Now()
	_, err := trs[0].Dial(t.Context(), 1)
	if took := time.Since(start); took < 25*time.Second || took > 65*time.Second {
		t.Errorf("it took %v: %v", took, err)
	}
	if err == nil || !strings.Contains(err.Error(), "its machine did not answer for half a minute") {
		t.Errorf("got %v", err)
	}
}

func wantLost(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "rank 1: the connection to it was lost (its machine did not answer for half a minute") {
		t.Errorf("got %v", err)
	}
}

// deaf takes streams in and reads nothing, as a process that has been stopped.
type deaf chan net.Conn

func (d deaf) Admit(int) bool                 { return true }
func (d deaf) Connected(_ int, conn net.Conn) { d <- conn }

// A stream that stalls ends, too: the other machine answers, but its process takes nothing.
func TestAStalledStream(t *testing.T) {
	testkit.Nightly(t, "it takes half a minute")
	t.Parallel()
	trs := between(t, hosttest.New(t, 2))
	other := make(deaf, 1)
	trs[1].Serve(other)
	defer trs[1].Close()
	e := endpoint.New(trs[0], 0, 2, endpoint.Options{})
	defer e.Close()
	l, err := e.Open(1, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 7 {
		l.Send(1, 1, 0, call.Call{}, make([]byte, 256<<10)) // as much as goes at once
	}
	defer func() { _ = (<-other).Close() }()
	err = l.Recv(1, 9, 0, call.Call{}, nil).Wait(t.Context(), 0)
	t.Logf("it ends after %v: %v", time.Since(start), err)
	if took := time.Since(start); took < 25*time.Second || took > 45*time.Second {
		t.Errorf("it ends after %v", took)
	}
	wantLost(t, err)
}

// On a way that loses large packets without a word, who waits is told of that suspicion before the stream ends, and
// then.
func TestAnMTUBlackHole(t *testing.T) {
	testkit.Nightly(t, "it takes half a minute")
	t.Parallel()
	w := hosttest.New(t, 2)
	w.Run(0, "ip link set eth0 gso_max_segs 1") // or packets travel here before they are cut
	w.Shrink(1, 600)
	var log strings.Builder
	trs := between(t, w)
	p := connect(t, trs, slog.New(slog.NewTextHandler(&log, nil)))
	go func() { _ = p.comms[1].Recv(0, 9, 0, call.Call{}, make([]byte, 1<<20)).Wait(t.Context(), 0) }()
	s := p.comms[0].Send(1, 9, 0, call.Call{}, make([]byte, 1<<20))
	err := s.Wait(t.Context(), 0)
	_ = p.ends[0].Close() // no more goes into the log
	const suspicion = "the MTU on the way may be smaller"
	if err == nil || !strings.Contains(err.Error(), suspicion) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), suspicion) {
		t.Errorf("the log says %q", log.String())
	}
}

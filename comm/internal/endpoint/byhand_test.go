package endpoint

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/testing/transporttest"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

// byHand runs body with rank 1 as an endpoint and a bare stream to it in the place of rank 0.
func byHand(t *testing.T, body func(t *testing.T, comm *Communicator, conn net.Conn)) {
	testkit.Once(t)
	synctest.Test(t, func(t *testing.T) {
		network := transporttest.NewNetwork(2)
		e := New(network.Transport(1), 1, 2, Options{})
		comm, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := network.Transport(0).Dial(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		body(t, comm, conn)
		_ = conn.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestDeathInTheMiddleOfAMessage(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		r := comm.Recv(0, 0, 0, call.Call{}, make([]byte, 1<<20))
		write(t, conn, wire.Header{Kind: wire.RTS, Context: 1, ID: 5, Size: 1 << 20}, nil)
		h, err := readHeader(conn)
		if err != nil || h.Kind != wire.CTS || h.ID != 5 {
			t.Fatalf("got %+v, %v, want clear to send", h, err)
		}
		write(t, conn, wire.Header{Kind: wire.Data, Context: 1, ID: 5, Size: 1 << 20}, make([]byte, 1<<19))
		_ = conn.Close()
		wantFailure(t, r.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
	})
}

// A rank that has moved a part of a long message since somebody looked does not hang. Questions are no such moves.
func TestAPartOfALongMessageMoves(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		e := comm.ep.api()
		moves := func(want bool, what string, do func()) {
			t.Helper()
			before := e.Moves()
			do()
			synctest.Wait()
			if (e.Moves() != before) != want {
				t.Errorf("%s: %d, and before %d", what, e.Moves(), before)
			}
		}
		comm.Recv(0, 0, 0, call.Call{}, make([]byte, 3<<20))
		write(t, conn, wire.Header{Kind: wire.RTS, Context: 1, ID: 5, Size: 3 << 20}, nil)
		if _, err := readHeader(conn); err != nil {
			t.Fatal(err)
		}
		moves(true, "bytes come", func() {
			write(t, conn, wire.Header{Kind: wire.Data, ID: 5, Size: 1 << 20}, make([]byte, 100<<10))
		})
		more := func(n int) {
			if _, err := conn.Write(make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		moves(true, "more come", func() { more(100 << 10) })
		comm.Send(0, 0, 0, call.Call{}, make([]byte, 3<<20))
		rts, err := readHeader(conn)
		if err != nil || rts.Kind != wire.RTS {
			t.Fatal(rts, err)
		}
		moves(true, "the rest of a part comes", func() { more(1<<20 - 200<<10) })
		moves(true, "bytes go", func() {
			write(t, conn, wire.Header{Kind: wire.CTS, ID: rts.ID}, nil)
			if _, err := io.ReadFull(conn, make([]byte, 2*connBuffer)); err != nil {
				t.Fatal(err)
			}
		})
		moves(false, "nothing moves", func() { time.Sleep(minute) })
		moves(false, "a question comes", func() { write(t, conn, wire.Header{Kind: wire.Ask, Context: 1}, nil) })
	})
}

func TestAPeerThatStopsInTheMiddleOfAMessage(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		r := comm.Recv(0, 0, 0, call.Call{}, make([]byte, 1<<20))
		write(t, conn, wire.Header{Kind: wire.RTS, Context: 1, ID: 5, Size: 1 << 20}, nil)
		if _, err := readHeader(conn); err != nil {
			t.Fatal(err)
		}
		write(t, conn, wire.Header{Kind: wire.Data, Context: 1, ID: 5, Size: 1 << 20}, make([]byte, 1<<19))
		start := time.Now()
		err := r.Wait(t.Context(), minute)
		wantFailure(t, err, diagnosis.PeerFailed, 0)
		if !errors.Is(err, diagnosis.ErrTimeout) || time.Since(start) != minute {
			t.Errorf("got %v after %v, want a timeout after %v", err, time.Since(start), minute)
		}
		h, err := readHeader(conn)
		for ; err == nil && h.Kind == wire.Ask; h, err = readHeader(conn) {
		}
		if err != nil || h.Kind != wire.Abort {
			t.Errorf("got %+v, %v, want to be told", h, err)
		}
	})
}

// A peer whose kernel takes no more, on behalf of a process that has stopped reading.
func TestSendingToAPeerThatDoesNotReadTimesOut(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, _ net.Conn) {
		r := comm.Recv(0, 0, 0, call.Call{}, nil)
		synctest.Wait()
		start := time.Now()
		err := comm.Send(0, 0, 0, call.Call{}, []byte("x")).Wait(t.Context(), minute)
		wantFailure(t, err, diagnosis.PeerFailed, 0)
		if !errors.Is(err, diagnosis.ErrTimeout) || time.Since(start) != minute {
			t.Errorf("got %v after %v, want a timeout after %v", err, time.Since(start), minute)
		}
		wantFailure(t, r.Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
	})
}

func TestNonsenseEndsTheStream(t *testing.T) {
	for name, h := range map[string]wire.Header{
		"unknown kind":       {Kind: 99},
		"no kind":            {},
		"eager too long":     {Kind: wire.Eager, Size: wire.EagerLimit + 1},
		"abort too long":     {Kind: wire.Abort, Size: wire.FailureLimit + 1},
		"answer too long":    {Kind: wire.Answer, Size: wire.ReportLimit + 1},
		"message too long":   {Kind: wire.RTS, Size: wire.MaxMessage + 1},
		"credit never given": {Kind: wire.Credit, Size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
				write(t, conn, h, nil)
				wantFailure(t, comm.Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
			})
		})
	}
}

func write(t *testing.T, conn net.Conn, h wire.Header, payload []byte) {
	t.Helper()
	if _, err := conn.Write(append(h.Append(nil), payload...)); err != nil {
		t.Fatal(err)
	}
}

func readHeader(conn net.Conn) (wire.Header, error) {
	b := make([]byte, wire.HeaderSize)
	if _, err := io.ReadFull(conn, b); err != nil {
		return wire.Header{}, err
	}
	return wire.Parse(b)
}

// FuzzStream has a peer send anything. What is kept of it is in proportion to it, and within bounds.
func FuzzStream(f *testing.F) {
	f.Add((wire.Header{Kind: wire.Eager, Context: 1, Size: wire.EagerLimit}).Append(nil))
	f.Add((wire.Header{Kind: wire.RTS, Context: 1, Size: 1 << 40, ID: 1}).Append(nil))
	f.Add(append((wire.Header{Kind: wire.Abort, Context: 2, Size: 2}).Append(nil), "{}"...))
	f.Add(append((wire.Header{Kind: wire.Leave, Context: 2}).Append(nil), (wire.Header{Kind: wire.Ask, Context: 1, Fingerprint: call.Fingerprint{Seq: 1}}).Append(nil)...))
	f.Add(append((wire.Header{Kind: wire.Eager, Context: 2, Size: 3}).Append(nil), append([]byte("abc"), (wire.Header{Kind: wire.Goodbye}).Append(nil)...)...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		e := New(slowTransport{make(chan error)}, 1, 2, Options{})
		defer e.Close()
		comm, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		comm.Recv(0, 5, 0, call.Call{}, make([]byte, 8))
		in := e.lock()
		defer in.unlock()
		p := e.peers[0]
		testkit.AllocatesAtMost(t, 2*wire.LongestChunk+64*len(stream), func() {
			for part := range slices.Chunk(stream, 100) {
				if in.feed(p, part) != nil {
					break
				}
			}
		})
		if eager := p.received.EagerBytes; eager > wire.EagerCredit+wire.LongestChunk+wire.MessageCost || eager < 0 || len(e.early) > len(stream)/wire.HeaderSize+1 {
			t.Errorf("%d bytes and %d groups are kept", eager, len(e.early))
		}
	})
}

// slowTransport has dials that end when the test says so.
type slowTransport struct{ result chan error }

func (s slowTransport) Serve(transport.Handler) {}
func (s slowTransport) Close() error            { return nil }
func (s slowTransport) Dial(ctx context.Context, _ int) (net.Conn, error) {
	select {
	case err := <-s.result:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The peer's own stream comes through, and only then this rank's dial fails.
func TestADialThatFailsAfterThePeersDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := slowTransport{make(chan error)}
		e := New(tr, 1, 2, Options{})
		comm, err := e.Open(1, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 2)
		r := comm.Recv(0, 0, 0, call.Call{}, buf) // dials
		synctest.Wait()
		mine, theirs := net.Pipe()
		if !e.Admit(0) {
			t.Fatal("the lower rank's dial was not admitted")
		}
		e.Connected(0, mine)
		tr.result <- syscall.ECONNREFUSED
		synctest.Wait()
		write(t, theirs, wire.Header{Kind: wire.Eager, Context: 1, Size: 2}, []byte("ok"))
		must(t, r)
		_ = theirs.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

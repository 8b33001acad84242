package endpoint

import (
	"errors"
	"io"
	"net"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

// heapBytes is how much memory is in use, with what nobody has collected yet.
func heapBytes() int {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// A peer that has the token, and no manners, is cut off by name, whatever it sends, and has cost little memory by then. No rank
// sends so much of any of it: see the tests below.
func TestAPeerThatFloods(t *testing.T) {
	testkit.WithoutRace(t)
	const other, closed = 4, 3 // groups: one that has not been made here, as those after it, and one that has been closed
	eager := func(group uint64) wire.Header {
		return wire.Header{Kind: wire.Eager, Context: group, Size: wire.EagerLimit}
	}
	for name, c := range map[string]struct {
		h    wire.Header
		most int  // frames that an honest rank may send, and one; of closed groups twice as many, as credit for all of them may be on the way
		each bool // for a group of its own
	}{
		"messages that nobody receives":      {eager(1), wire.EagerCredit/(wire.EagerLimit+wire.MessageCost) + 1, false},
		"empty messages":                     {wire.Header{Kind: wire.Eager, Context: 1}, wire.EagerCredit/wire.MessageCost + 1, false},
		"messages of groups never made":      {eager(other), wire.EagerCredit/(wire.EagerLimit+wire.MessageCost) + 1, true},
		"messages of closed groups":          {eager(closed), 2*wire.EagerCredit/(wire.EagerLimit+wire.MessageCost) + 1, false},
		"announcements":                      {wire.Header{Kind: wire.RTS, Context: 1, Size: 1 << 30}, wire.MaxRTS + 1, false},
		"announcements of groups never made": {wire.Header{Kind: wire.RTS, Context: other}, wire.MaxRTS + 1, true},
		"announcements of closed groups":     {wire.Header{Kind: wire.RTS, Context: closed}, 2*wire.MaxRTS + 1, false},
		"leaves of groups never made":        {wire.Header{Kind: wire.Leave, Context: other}, mostUnopened + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) { // which reads nothing
				gone, err := comm.ep.api().Open(closed, []int{0, 1})
				if err != nil {
					t.Fatal(err)
				}
				gone.Close()
				before, sent := heapBytes(), 0
				payload := make([]byte, wire.EagerLimit)
				for ; err == nil && sent <= 2*c.most; sent++ {
					n := 0
					if c.h.Kind == wire.Eager {
						n = int(c.h.Size)
					}
					if c.each {
						c.h.Context += 2
					}
					_, err = conn.Write(append(c.h.Append(nil), payload[:n]...))
				}
				if err == nil {
					t.Errorf("%d frames were taken", sent)
				}
				if sent > c.most+8 {
					t.Errorf("%d frames were taken, want at most %d", sent, c.most+8)
				}
				if took := heapBytes() - before; took > 8*wire.EagerCredit {
					t.Errorf("they took %d MiB", took>>20)
				}
				synctest.Wait()
				err = comm.Recv(0, 9, 0, call.Call{}, nil).Wait(t.Context(), minute)
				wantFailure(t, err, diagnosis.PeerFailed, 0)
				if err == nil || !strings.Contains(err.Error(), "broke the protocol: ") || !strings.Contains(err.Error(), ", limit ") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A lateConn is a stream whose writes return only when the test says so.
type lateConn struct {
	net.Conn
	mayReturn chan struct{}
}

func (c lateConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	<-c.mayReturn
	return n, err
}

// A peer may use its credit, or announce more, before this rank's write of that credit has returned.
func TestAPeerThatIsFasterThanAWrite(t *testing.T) {
	for name, c := range map[string]struct {
		h       wire.Header
		most    int // frames that the peer may send
		receive int // how many are received before it may go on
	}{
		"credit": {wire.Header{Kind: wire.Eager, Context: 1}, wire.EagerCredit / wire.MessageCost, wire.CreditStep / wire.MessageCost},
		"answer": {wire.Header{Kind: wire.RTS, Context: 1, Size: 1}, wire.MaxRTS, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(slowTransport{make(chan error)}, 1, 2, Options{})
				comm, err := e.Open(1, []int{0, 1})
				if err != nil {
					t.Fatal(err)
				}
				mine, theirs := net.Pipe()
				late := lateConn{mine, make(chan struct{})}
				defer func() {
					close(late.mayReturn)
					_ = theirs.Close()
					if err := e.Close(); err != nil {
						t.Error(err)
					}
				}()
				e.Admit(0)
				e.Connected(0, late)
				for i := range c.most {
					c.h.ID = uint64(i)
					write(t, theirs, c.h, nil)
				}
				synctest.Wait()
				for range c.receive {
					comm.Recv(0, 0, 0, call.Call{}, make([]byte, 1))
				}
				if _, err := readHeader(theirs); err != nil {
					t.Fatal(err)
				}
				c.h.ID++
				write(t, theirs, c.h, nil)
				write(t, theirs, wire.Header{Kind: wire.Credit}, nil) // it is still taken
			})
		})
	}
}

// An answer to what has not been announced would let a rank announce more than it may.
func TestAnswersToNothing(t *testing.T) {
	for _, k := range []wire.Kind{wire.CTS, wire.Decline} {
		byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
			write(t, conn, wire.Header{Kind: k, ID: 1}, nil)
			wantFailure(t, comm.Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		})
	}
}

// A rank may send as many messages as it likes before the first of them is received: of those that may not be announced yet its
// peer hears later, in their order. Collectives go on meanwhile.
func TestMoreMessagesThanMayBeAnnounced(t *testing.T) {
	testkit.WithoutRace(t)
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n = wire.MaxRTS + 5_000
		sent := make([]*Op, n)
		for i := range sent {
			sent[i] = w.send(0, 1, 5, pattern(4, i))
		}
		large := w.send(0, 1, 6, pattern(wire.EagerLimit+1, 1))
		synctest.Wait()
		p := w.ends[1].peers[0]
		if r := p.received; r.Announced != wire.MaxRTS-wire.RTSReserve || r.EagerBytes > wire.EagerCredit-wire.EagerReserve {
			t.Errorf("%d messages are announced, and %d bytes are here", r.Announced, r.EagerBytes)
		}
		buf := make([]byte, 2*wire.EagerLimit)
		c := w.comms[0].Send(1, 0, 1, call.Call{Kind: 1}, pattern(wire.LongestChunk, 2))
		if err := w.comms[1].Begin(1, call.Call{Kind: 1}, 0); err != nil {
			t.Fatal(err)
		}
		must(t, w.comms[1].Recv(0, 0, 1, call.Call{Kind: 1}, make([]byte, wire.LongestChunk)), c)
		for i := range sent {
			r := w.recv(1, 0, 5, buf)
			must(t, r, sent[i])
			if string(r.Message()) != string(pattern(4, i)) {
				t.Fatalf("message %d is another one", i)
			}
			r.Free()
		}
		must(t, w.recv(1, 0, 6, buf), large)
		synctest.Wait()
		for _, e := range w.ends {
			for _, p := range e.peers {
				if r := p.received; r.Announced != 0 || r.EagerBytes > wire.CreditStep || p.sent.Unanswered != 0 || p.sent.HasWaiting(0) {
					t.Errorf("rank %d still has %+v of rank %d, and %+v for it", e.rank, p.received, p.rank, p.sent)
				}
			}
		}
	})
}

// Messages that wait to be announced end with their group.
func TestAGroupClosedWhileMessagesWait(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		var others [2]*Communicator
		for r := range others {
			comm, err := w.ends[r].Open(2, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			others[r] = comm
		}
		sent := make([]*Op, wire.MaxRTS+100)
		large := make([]byte, wire.EagerLimit+1)
		for i := range sent {
			sent[i] = others[0].Send(1, 0, 0, call.Call{}, large)
		}
		after := w.send(0, 1, 5, []byte("after")) // which they hold up
		synctest.Wait()
		others[1].Close()
		r := w.recv(1, 0, 5, make([]byte, 5))
		must(t, after, r)
		for _, op := range sent {
			wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Closed, 1)
		}
		synctest.Wait()
		if p := w.ends[0].peers[1]; p.sent.Unanswered != 0 || p.sent.HasWaiting(0) || len(w.ends[0].sends) > 0 {
			t.Errorf("there still are %+v, and %d sends", p.sent, len(w.ends[0].sends))
		}
	})
}

// A rank that is slow to make groups which others have made, used, and closed again.
func TestManyGroupsOpenedLate(t *testing.T) {
	testkit.WithoutRace(t)
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n = 1500
		for i := range uint64(n) {
			comm, err := w.ends[0].Open(10+i, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			must(t, comm.Send(1, 0, 0, call.Call{}, []byte{1}))
			comm.Close()
		}
		synctest.Wait()
		if p := w.ends[1].peers[0]; p.earlyLeaves != n || p.received.EagerBytes != n*(1+wire.MessageCost) {
			t.Errorf("after %d groups %+v is kept, and %d leaves", n, p.received, p.earlyLeaves)
		}
		for i := range uint64(n) {
			comm, err := w.ends[1].Open(10+i, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			must(t, comm.Recv(0, 0, 0, call.Call{}, make([]byte, 1)))
			comm.Close()
		}
		synctest.Wait()
		if p := w.ends[1].peers[0]; len(w.ends[1].early) > 0 || p.earlyLeaves != 0 || p.received.EagerBytes > wire.CreditStep {
			t.Errorf("of %d groups and %+v there is something left", len(w.ends[1].early), p.received)
		}
	})
}

func TestABrokenProtocolIsNotADeath(t *testing.T) {
	byHand(t, func(t *testing.T, comm *Communicator, conn net.Conn) {
		comm.ep.opt.Liveness = func(int) diagnosis.Liveness { time.Sleep(time.Second); return diagnosis.Dead }
		write(t, conn, wire.Header{Kind: 99}, nil)
		start := time.Now()
		err := comm.Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), minute)
		if err == nil || err.Error() != "rank 0: broke the protocol: frame of unknown kind 99" || errors.Is(err, io.EOF) || time.Since(start) > 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

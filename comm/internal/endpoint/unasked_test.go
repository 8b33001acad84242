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
	const other, closed = 4, 3 // groups: one that has not been made here, as those after it, and one that has been closed
	eager := func(group uint64) header { return header{kind: kindEager, group: group, size: EagerLimit} }
	for name, c := range map[string]struct {
		h    header
		most int  // frames that an honest rank may send, and one
		each bool // for a group of its own
	}{
		"messages that nobody receives":      {eager(1), eagerBudget/eagerCost(EagerLimit) + 1, false},
		"empty messages":                     {header{kind: kindEager, group: 1}, eagerBudget/messageCost + 1, false},
		"messages of groups never made":      {eager(other), eagerBudget/eagerCost(EagerLimit) + 1, true},
		"messages of closed groups":          {eager(closed), eagerBudget/eagerCost(EagerLimit) + 1, false},
		"announcements":                      {header{kind: kindRTS, group: 1, size: 1 << 30}, mostAnnounced + 1, false},
		"announcements of groups never made": {header{kind: kindRTS, group: other}, mostAnnounced + 1, true},
		"announcements of closed groups":     {header{kind: kindRTS, group: closed}, mostAnnounced + 1, false},
		"leaves of groups never made":        {header{kind: kindLeave, group: other}, mostUnopened + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, func(t *testing.T, l *Lane, conn net.Conn) { // which reads nothing
				gone, err := l.ep.Open(closed, []int{0, 1})
				if err != nil {
					t.Fatal(err)
				}
				gone.Close()
				before, sent := heapBytes(), 0
				payload := make([]byte, EagerLimit)
				for ; err == nil && sent <= 2*c.most; sent++ {
					n := 0
					if c.h.kind == kindEager {
						n = int(c.h.size)
					}
					if c.each {
						c.h.group += 2
					}
					_, err = conn.Write(append(c.h.append(nil), payload[:n]...))
				}
				if err == nil {
					t.Errorf("%d frames were taken", sent)
				}
				if sent > c.most+mostFrames {
					t.Errorf("%d frames were taken, want at most %d", sent, c.most+mostFrames)
				}
				if took := heapBytes() - before; took > 8*eagerBudget {
					t.Errorf("they took %d MiB", took>>20)
				}
				synctest.Wait()
				err = l.Recv(0, 9, 0, call.Call{}, nil).Wait(t.Context(), minute)
				wantFailure(t, err, diagnosis.PeerFailed, 0)
				if err == nil || !strings.Contains(err.Error(), "broke the protocol: ") || !strings.Contains(err.Error(), ", limit ") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// An answer to what has not been announced would let a rank announce more than it may.
func TestAnswersToNothing(t *testing.T) {
	for _, k := range []kind{kindCTS, kindDecline} {
		byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
			write(t, conn, header{kind: k, id: 1}, nil)
			wantFailure(t, l.Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), minute), diagnosis.PeerFailed, 0)
		})
	}
}

// A rank may send as many messages as it likes before the first of them is received: of those that may not be announced yet its
// peer hears later, in their order. Collectives go on meanwhile.
func TestMoreMessagesThanMayBeAnnounced(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n = mostAnnounced + 5_000
		sent := make([]*Op, n)
		for i := range sent {
			sent[i] = w.send(0, 1, 5, pattern(4, i))
		}
		large := w.send(0, 1, 6, pattern(EagerLimit+1, 1))
		synctest.Wait()
		p := w.ends[1].peers[0]
		if p.unasked.announced != mostAnnounced-announceReserve || p.unasked.eager > eagerBudget-eagerReserve {
			t.Errorf("%d messages are announced, and %d bytes are here", p.unasked.announced, p.unasked.eager)
		}
		buf := make([]byte, 2*EagerLimit)
		c := w.lanes[0].Send(1, 0, 1, call.Call{Op: 1}, pattern(LongestPiece, 2))
		if err := w.lanes[1].Begin(1, call.Call{Op: 1}, 0); err != nil {
			t.Fatal(err)
		}
		must(t, w.lanes[1].Recv(0, 0, 1, call.Call{Op: 1}, make([]byte, LongestPiece)), c)
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
				if u := p.unasked; u.announced != 0 || u.eager > creditStep || p.announcements.unanswered != 0 || len(p.announcements.transfers) > 0 {
					t.Errorf("rank %d still has %+v of rank %d, and %+v for it", e.rank, u, p.rank, p.announcements)
				}
			}
		}
	})
}

// Messages that wait to be announced end with their group.
func TestAGroupClosedWhileMessagesWait(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		var others [2]*Lane
		for r := range others {
			l, err := w.ends[r].Open(2, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			others[r] = l
		}
		sent := make([]*Op, mostAnnounced+100)
		large := make([]byte, EagerLimit+1)
		for i := range sent {
			sent[i] = others[0].Send(1, 0, 0, call.Call{}, large)
		}
		after := w.send(0, 1, 5, []byte("after")) // which they hold up
		synctest.Wait()
		others[1].Close()
		r := w.recv(1, 0, 5, make([]byte, 5))
		must(t, after, r)
		for _, op := range sent {
			wantFailure(t, op.Wait(t.Context(), minute), diagnosis.Left, 1)
		}
		synctest.Wait()
		if p := w.ends[0].peers[1]; p.announcements.unanswered != 0 || len(p.announcements.transfers) > 0 || len(w.ends[0].sends) > 0 {
			t.Errorf("there still are %d, %d and %d", p.announcements.unanswered, len(p.announcements.transfers), len(w.ends[0].sends))
		}
	})
}

// A rank that is slow to make groups which others have made, used, and closed again.
func TestManyGroupsOpenedLate(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *testWorld) {
		const n = 1500
		for i := range uint64(n) {
			l, err := w.ends[0].Open(10+i, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			must(t, l.Send(1, 0, 0, call.Call{}, []byte{1}))
			l.Close()
		}
		synctest.Wait()
		if p := w.ends[1].peers[0]; p.unasked.left != n || p.unasked.eager != n*eagerCost(1) {
			t.Errorf("after %d groups %+v is kept", n, p.unasked)
		}
		for i := range uint64(n) {
			l, err := w.ends[1].Open(10+i, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			must(t, l.Recv(0, 0, 0, call.Call{}, make([]byte, 1)))
			l.Close()
		}
		synctest.Wait()
		if p := w.ends[1].peers[0]; len(w.ends[1].early) > 0 || p.unasked.left != 0 || p.unasked.eager > creditStep {
			t.Errorf("of %d groups and %+v there is something left", len(w.ends[1].early), p.unasked)
		}
	})
}

func TestABrokenProtocolIsNotADeath(t *testing.T) {
	byHand(t, func(t *testing.T, l *Lane, conn net.Conn) {
		l.ep.opt.Died = func(int) Fate { time.Sleep(time.Second); return Dead }
		write(t, conn, header{kind: 99}, nil)
		start := time.Now()
		err := l.Recv(0, 0, 0, call.Call{}, nil).Wait(t.Context(), minute)
		if err == nil || err.Error() != "rank 0: broke the protocol: frame of unknown kind 99" || errors.Is(err, io.EOF) || time.Since(start) > 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

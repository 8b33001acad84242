package acceptor

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A caller that hangs up, at whatever point, is not logged as a stranger: ranks that end hang up.
func TestCallersThatLeaveAreNotLogged(t *testing.T) {
	log := &testkit.Log{}
	d, err := Listen(secret, log.Logger())
	if err != nil {
		t.Fatal(err)
	}
	d.Serve(Self{World: 7, Rank: 1, Ranks: 2, Here: 2}, admitsNobody{new(atomic.Int32)})
	memory, err := segment.Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	d.Export(1, memory)
	for _, hello := range [][]byte{binary.LittleEndian.AppendUint64(nil, 1), transport.Hello{World: 7, To: 1}.Bytes()} {
		for leaves := range 3 { // before a step of the handshake, of which this side writes two
			for range 20 {
				c, err := net.Dial("unix", d.Address())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = auth.Dial(&leaving{Conn: c, writes: leaves}, secret, hello)
				_ = c.Close()
			}
		}
	}
	c, err := net.Dial("unix", d.Address()) // a stranger is logged
	if err != nil {
		t.Fatal(err)
	}
	_, _ = auth.Dial(c, []byte("another secret, also long"), nil)
	_ = c.Close()
	for begun := time.Now(); !strings.Contains(log.String(), "turned away a connection") && time.Since(begun) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, auth.ErrWrongToken.Error()) {
		t.Errorf("the log says:\n%s", text)
	}
}

// admitsNobody admits no stream, and counts how often it is asked.
type admitsNobody struct{ asked *atomic.Int32 }

func (n admitsNobody) Admit(int) bool {
	n.asked.Add(1)
	return false
}
func (admitsNobody) Connected(int, net.Conn) {}

// A leaving connection closes itself after so many writes.
type leaving struct {
	net.Conn
	writes int
}

func (l *leaving) Write(b []byte) (int, error) {
	if l.writes == 0 {
		_ = l.Close()
		return 0, net.ErrClosed
	}
	n, err := l.Conn.Write(b)
	if l.writes--; l.writes == 0 {
		_ = l.Close()
	}
	return n, err
}

// Silent processes, more than an acceptor keeps and more than fit its queue, keep no rank from attaching a segment.
func TestSilentProcessesKeepNoRankOut(t *testing.T) {
	d := listen(t)
	memory, err := segment.Create(5000)
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	d.Export(1, memory)
	ctx, cancel := context.WithCancel(t.Context())
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer cancel()
	for range 1200 {
		strangers.Go(func() {
			for ctx.Err() == nil {
				c, err := net.Dial("unix", d.Address())
				if err != nil {
					time.Sleep(10 * time.Millisecond) // the queue is full
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				_, _ = c.Read(make([]byte, 1))
				stop()
				_ = c.Close()
			}
		})
	}
	for range 5 {
		got, err := attach(t, d, secret, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
}

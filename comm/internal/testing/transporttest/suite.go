// Package transporttest checks implementations of transport.Transport, and kills them on request. It has one for tests:
// [Network].
//
// A new transport is tested in a few lines: Run with a function that makes the transports of a world.
package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/transport"
)

// Run checks the transports that world makes for the ranks of a world of size. It closes them.
func Run(t *testing.T, world func(t *testing.T, size int) []transport.Transport) {
	t.Run("bytes go both ways", func(t *testing.T) {
		trs, hs := serve(t, world(t, 2))
		a := dial(t, trs[0], 1)
		b := hs[1].next(t, 0)
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB: more than a kernel buffers
			go func() { _, _ = way[0].Write(sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("got %v, or other bytes than were sent", err)
			}
		}
	})
	t.Run("a closed stream ends at the other side", func(t *testing.T) {
		trs, hs := serve(t, world(t, 2))
		a := dial(t, trs[1], 0)
		b := hs[0].next(t, 1)
		go func() {
			_, _ = a.Write([]byte("last words"))
			_ = a.Close()
		}()
		if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("every pair", func(t *testing.T) {
		const size = 5
		trs, hs := serve(t, world(t, size))
		var wg sync.WaitGroup
		for from := range size {
			for to := range from {
				wg.Go(func() {
					c := dial(t, trs[from], to)
					fmt.Fprintf(c, "%d", from)
				})
				wg.Go(func() {
					c := hs[to].next(t, from)
					b := make([]byte, 1)
					if _, err := io.ReadFull(c, b); err != nil || string(b) != fmt.Sprint(from) {
						t.Errorf("from %d to %d: got %q, %v", from, to, b, err)
					}
				})
			}
		}
		wg.Wait()
	})
	t.Run("an unwanted dial has crossed", func(t *testing.T) {
		trs, hs := serve(t, world(t, 2))
		hs[1].refuse = true
		if _, err := trs[0].Dial(t.Context(), 1); !errors.Is(err, transport.ErrCrossed) {
			t.Errorf("got %v, want ErrCrossed", err)
		}
	})
	t.Run("a closed transport refuses at once", func(t *testing.T) {
		trs, _ := serve(t, world(t, 2))
		if err := trs[1].Close(); err != nil {
			t.Error(err)
		}
		if err := trs[1].Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if c, err := trs[0].Dial(ctx, 1); err == nil || ctx.Err() != nil {
			t.Errorf("got %v, %v, want a refusal", c, err)
		}
	})
	t.Run("dialling ends with its context", func(t *testing.T) {
		trs := world(t, 2)
		t.Cleanup(func() { closeAll(t, trs) })
		trs[0].Serve(&handler{}) // rank 1 does not serve
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := trs[0].Dial(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
	})
	t.Run("there is no such rank", func(t *testing.T) {
		trs, _ := serve(t, world(t, 2))
		for _, rank := range []int{-1, 2} {
			if _, err := trs[0].Dial(t.Context(), rank); err == nil {
				t.Errorf("dialling rank %d of 2 went well", rank)
			}
		}
	})
}

func serve(t *testing.T, trs []transport.Transport) ([]transport.Transport, []*handler) {
	hs := make([]*handler, len(trs))
	for r := range trs {
		hs[r] = &handler{from: make([]chan net.Conn, len(trs))}
		for p := range trs {
			hs[r].from[p] = make(chan net.Conn, 1)
		}
		trs[r].Serve(hs[r])
	}
	t.Cleanup(func() { closeAll(t, trs) })
	return trs, hs
}

func closeAll(t *testing.T, trs []transport.Transport) {
	for _, tr := range trs {
		if err := tr.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func dial(t *testing.T, tr transport.Transport, rank int) net.Conn {
	c, err := tr.Dial(t.Context(), rank)
	if err != nil {
		t.Errorf("dial rank %d: %v", rank, err)
		c, _ = net.Pipe()
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// handler takes every stream unless refuse is set.
type handler struct {
	refuse bool
	from   []chan net.Conn // by rank
}

func (h *handler) Admit(int) bool { return !h.refuse }

func (h *handler) Connected(rank int, conn net.Conn) { h.from[rank] <- conn }

func (h *handler) next(t *testing.T, rank int) net.Conn {
	c := <-h.from[rank]
	t.Cleanup(func() { _ = c.Close() })
	return c
}

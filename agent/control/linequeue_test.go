package control

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/recent"
)

// TestLineQueue: the lines of each worker come out in order. Those that are forgotten are the oldest, and the line behind a gap says so.
func TestLineQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 500).Draw(t, "limit")
		q := newLineQueue(limit)
		pushed, next := 0, map[int]int{}
		var want []Line // that have been pushed and not popped
		pop := func() {
			l, ok := q.pop()
			if !ok {
				t.Fatal("the queue is closed")
			}
			var at int
			if _, err := fmt.Sscan(l.Text, &at); err != nil {
				t.Fatal(err)
			}
			gap := false
			for len(want) > 0 && want[0].Text != l.Text {
				want = want[1:]
			}
			if len(want) == 0 {
				t.Fatalf("line %q out of order", l.Text)
			}
			want = want[1:]
			for i := next[l.LocalRank]; i < at; i++ {
				gap = gap || i%3 == l.LocalRank
			}
			if next[l.LocalRank] = at + 1; l.Missed != gap {
				t.Fatalf("line %d says missed=%t, want %t", at, l.Missed, gap)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(q.lines) > 0 && rapid.Bool().Draw(t, "pop") {
				pop()
				continue
			}
			l := Line{LocalRank: pushed % 3, Text: fmt.Sprint(pushed, strings.Repeat(" ", rapid.IntRange(0, 100).Draw(t, "length")))}
			q.push(l)
			want = append(want, l)
			pushed++
			total := 0
			for _, l := range q.lines {
				total += sizeOf(l)
			}
			if total > limit || total != q.bytes {
				t.Fatalf("%d bytes, counted as %d, limit %d", total, q.bytes, limit)
			}
		}
		for len(q.lines) > 0 {
			pop()
		}
		q.close()
		if _, ok := q.pop(); ok {
			t.Fatal("a line after all")
		}
	})
}

// TestSlowFollower: a client reads while its user does not, so that nobody takes the connection for dead, and shows the newest lines then.
func TestSlowFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := recent.New(1)
		s := New(Config{Recent: lines})
		s.Publish(node())
		var agentsEnd net.Conn
		c := NewClient(func(context.Context) (net.Conn, error) {
			here, there := net.Pipe() // without a buffer: a write lasts until it has been read
			agentsEnd = there
			go s.ServeConn(&impatient{there})
			return here, nil
		})
		var got []Line
		ended := make(chan error)
		go func() {
			ended <- c.Logs(t.Context(), -1, true, func(l Line) {
				if got = append(got, l); len(got) == 1 {
					time.Sleep(time.Hour)
				}
			})
		}()
		for i := range 2000 {
			lines.Add(0, byte(launcher.Stdout), []byte(fmt.Sprintf("%d%s\n", i, strings.Repeat("x", 8<<10))))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		s.Close()
		err := <-ended
		_ = agentsEnd.Close()
		missed := 0
		for _, l := range got {
			if l.Missed {
				missed++
			}
		}
		if err != nil || missed != 1 || len(got) < followLimit/(9<<10) || !strings.HasPrefix(got[len(got)-1].Text, "1999x") {
			t.Errorf("%d lines, %d gaps, %v", len(got), missed, err)
		}
	})
}

// An impatient connection breaks if a write is not read soon, as TCP does with a user timeout.
type impatient struct{ net.Conn }

func (c *impatient) SetWriteDeadline(time.Time) error { return nil }

func (c *impatient) Write(b []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	return c.Conn.Write(b)
}

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

// TestLineQueue: lines come out in the order in which they came. If the user has stopped to read, lines are forgotten: of each worker the
// oldest ones, never its last one, and the line behind a gap says so.
func TestLineQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newLineQueue(rapid.IntRange(500, 2000).Draw(t, "limit")) // at least one line fits
		pushed, last := 0, map[int]int{}
		next := map[int]int{} // the number of the next line of each worker
		newest := -1
		pop := func() {
			l, ok := q.pop()
			if !ok {
				t.Fatal("the queue is closed")
			}
			var number, ofWorker int
			if _, err := fmt.Sscan(l.Text, &number, &ofWorker); err != nil {
				t.Fatal(err)
			}
			if number <= newest || l.Missed != (ofWorker != next[l.LocalRank]) {
				t.Fatalf("line %d after %d, number %d of a worker whose next is %d, missed=%t", number, newest, ofWorker, next[l.LocalRank], l.Missed)
			}
			newest, next[l.LocalRank] = number, ofWorker+1
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			if q.lines.Len() > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				pop()
				continue
			}
			worker := rapid.IntRange(0, 2).Draw(t, "worker")
			text := fmt.Sprint(pushed, " ", last[worker], " ", strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "length")))
			q.idle = time.Time{} // nothing has been taken for long
			q.push(Line{LocalRank: worker, Text: text})
			pushed++
			last[worker]++
			total, most := 0, 0
			for _, b := range q.workers {
				total, most = total+b.bytes, max(most, len(b.lines))
			}
			if total != q.bytes || total > q.limit && most > 1 {
				t.Fatalf("%d bytes, counted as %d, limit %d, %d lines of a worker", total, q.bytes, q.limit, most)
			}
		}
		for q.lines.Len() > 0 {
			pop()
		}
		for worker, pushed := range last {
			if next[worker] != pushed {
				t.Fatalf("worker %d: the last line is missing", worker)
			}
		}
		q.close()
		if _, ok := q.pop(); ok {
			t.Fatal("a line after all")
		}
	})
}

// TestSteadyReader: a user who reads slowly, but reads on, misses nothing that the agent has.
func TestSteadyReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLineQueue(1000)
		go func() {
			defer q.close()
			for i := range 500 {
				q.push(Line{Text: fmt.Sprint(i)})
			}
		}()
		for i := range 500 {
			time.Sleep(pausedAfter - time.Second)
			if l, ok := q.pop(); !ok || l.Missed || l.Text != fmt.Sprint(i) {
				t.Fatalf("line %d is %+v, %t", i, l, ok)
			}
		}
	})
}

// TestReaderWithoutLines: a user who has had nothing to read for long has not stopped to read.
func TestReaderWithoutLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLineQueue(1000)
		time.Sleep(time.Hour)
		go func() {
			defer q.close()
			for i := range 100 {
				q.push(Line{Text: fmt.Sprint(i)})
			}
		}()
		synctest.Wait()
		for i := range 100 {
			if l, ok := q.pop(); !ok || l.Missed || l.Text != fmt.Sprint(i) {
				t.Fatalf("line %d is %+v, %t", i, l, ok)
			}
		}
	})
}

// TestStop: nobody waits for a user who has gone.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, begun := newLineQueue(1), time.Now()
		go func() {
			time.Sleep(time.Second)
			q.stop()
		}()
		q.push(Line{})
		q.push(Line{})
		if took := time.Since(begun); took != time.Second {
			t.Errorf("push took %v", took)
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
		if err != nil || missed != 1 || len(got) < followLimit/(9<<10) || len(got) > followLimit/(8<<10)+5 || !strings.HasPrefix(got[len(got)-1].Text, "1999x") {
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

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
)

// TestLineQueue: lines come out in the order in which they came. If there are too many, the oldest are forgotten, and
// the line of the same worker behind a gap says so.
func TestLineQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newLineQueue(rapid.IntRange(200, 2000).Draw(t, "limit"))
		pushed, ofWorker := 0, map[int]int{}
		newest, next := -1, map[int]int{} // the number of the next line of each worker
		pop := func() {
			l, ok := q.pop()
			var number, own int
			if _, err := fmt.Sscan(l.Text, &number, &own); err != nil || !ok {
				t.Fatalf("%+v, %t, %v", l, ok, err)
			}
			if number <= newest || l.Missed != (own != next[l.LocalRank]) {
				t.Fatalf("line %d after %d: %+v, and the next of its worker is %d", number, newest, l, next[l.LocalRank])
			}
			newest, next[l.LocalRank] = number, own+1
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			if len(q.lines) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				pop()
				continue
			}
			worker := rapid.IntRange(0, 2).Draw(t, "worker")
			padding := strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "length"))
			q.push(Line{LocalRank: worker, Text: fmt.Sprint(pushed, " ", ofWorker[worker], " ", padding)})
			pushed++
			ofWorker[worker]++
			if q.bytes > q.limit && len(q.lines) > 1 {
				t.Fatalf("%d bytes in %d lines, limit %d", q.bytes, len(q.lines), q.limit)
			}
		}
		q.close()
		for len(q.lines) > 0 {
			pop()
		}
		if l, ok := q.pop(); ok || newest != pushed-1 || q.bytes != 0 {
			t.Fatalf("the last line was %d of %d, then %+v; %d bytes are left", newest, pushed, l, q.bytes)
		}
	})
}

// TestPausedFollower: a client reads while its user does not, so that nobody takes the connection for dead.
func TestPausedFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := launcher.NewRecent(1)
		s := New(Config{Recent: lines})
		s.Publish(node())
		c := NewClient(func(context.Context) (net.Conn, error) {
			here, there := net.Pipe() // without a buffer: a write lasts until it has been read
			go s.ServeConn(there)
			return here, nil
		})
		var got []string
		ended := make(chan error)
		go func() {
			ended <- c.Logs(t.Context(), -1, true, func(l Line) {
				if got = append(got, l.Text); len(got) == 1 || l.Missed {
					time.Sleep(time.Hour)
				}
			})
		}()
		const count = 200
		for i := range count {
			lines.Add(0, launcher.Stdout, []byte(fmt.Sprintf("%d%s\n", i, strings.Repeat("x", 8<<10))))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		s.Close()
		if err := <-ended; err != nil || len(got) != count || !strings.HasPrefix(got[count-1], fmt.Sprint(count-1, "x")) {
			t.Errorf("%d lines, %v", len(got), err)
		}
	})
}

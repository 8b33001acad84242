package admission

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func from(ip string) *Conn {
	return &Conn{source: sourceOf(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1})}
}

// The oldest goes, unless a source has more than its share: then its oldest does.
func TestWhoIsDropped(t *testing.T) {
	q := newQueue(32) // 2 for each
	var others []*Conn
	push := func(ip string) (*Conn, *Conn) {
		c := from(ip)
		victim := q.push(c)
		if victim != nil {
			q.remove(victim)
		}
		return c, victim
	}
	for i := range 16 {
		c, victim := push(fmt.Sprintf("10.0.0.%d", i))
		if victim != nil {
			t.Fatal("somebody was dropped while there was room")
		}
		others = append(others, c)
	}
	var flood []*Conn
	for i := range 100 {
		c, victim := push("10.9.9.9")
		if flood = append(flood, c); i < 16 {
			continue
		}
		if victim != flood[0] {
			t.Fatal("a flood from one address has pushed out another")
		}
		flood = flood[1:]
	}
	for i := range 16 { // those of many addresses that come now
		if _, victim := push(fmt.Sprintf("10.0.1.%d", i)); i < 14 && victim.source != flood[0].source {
			t.Errorf("newcomer %d has pushed out %v", i, victim.source)
		} else if i >= 14 && victim != others[i-14] {
			t.Errorf("newcomer %d has pushed out %v, which is not the oldest", i, victim.source)
		}
	}
}

func TestSources(t *testing.T) {
	for ip, want := range map[string]string{
		"10.1.2.3": "10.1.2.3/32", "::ffff:10.1.2.3": "10.1.2.3/32", "127.9.8.7": "127.0.0.1/32", "::1": "127.0.0.1/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
	} {
		if got := from(ip).source.String(); got != want {
			t.Errorf("%s is of %s, want %s", ip, got, want)
		}
	}
	if sourceOf(&net.UnixAddr{}) != sourceOf(nil) {
		t.Error("Unix sockets have sources")
	}
}

// A queue does what one would that looks at all connections each time.
func TestQueueIsRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(rapid.IntRange(1, 40).Draw(t, "limit"))
		var model []*Conn // the oldest first
		next := func() *Conn {
			n := make(map[any]int)
			for _, c := range model {
				n[c.source]++
			}
			var worst *Conn
			for _, c := range model {
				if worst == nil || max(n[c.source]-q.share, 0) > max(n[worst.source]-q.share, 0) {
					worst = c
				}
			}
			return worst
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "who")
				q.remove(model[i])
				model = slices.Delete(model, i, i+1)
			} else {
				c := from(fmt.Sprintf("10.0.0.%d", rapid.IntRange(0, 5).Draw(t, "from")))
				var want *Conn
				if len(model) >= q.limit {
					want = next()
				}
				victim := q.push(c)
				if victim != want {
					t.Fatalf("%v is dropped, want %v", victim, want)
				}
				model = append(model, c)
				if victim != nil {
					q.remove(victim)
					model = slices.Delete(model, slices.Index(model, victim), slices.Index(model, victim)+1)
				}
			}
			if q.n != len(model) || len(q.all()) != len(model) || q.next() != next() {
				t.Fatalf("%d are there, want %d", q.n, len(model))
			}
		}
	})
}

// Many who speak at the same time are no more than the limit, and each newcomer drops somebody else.
func TestManyAtATime(t *testing.T) {
	const limit, callers = 4, 1000
	l := Listen(local(t), Config{Limit: limit})
	defer l.Close()
	var all sync.WaitGroup
	l.mu.Lock()
	for range callers {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		c := &Conn{Conn: here, listener: l}
		all.Go(func() { l.register(c, &l.spoken, errCrowded) })
	}
	time.Sleep(5 * time.Millisecond) // a mutex that is waited for this long goes from one to the next
	l.mu.Unlock()
	all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spoken.n != limit {
		t.Errorf("%d connections are kept, limit %d", l.spoken.n, limit)
	}
}

package node

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gorun/gorun/rendezvous/internal/store"
	"github.com/gorun/gorun/rendezvous/internal/testing/storetest"
)

// A simWorld is etcd, agents and the network between them, in virtual time and one goroutine. What happens, and when, follows from the
// seed.
type simWorld struct {
	random *rand.Rand
	now    time.Time
	queue  simQueue
	serial int

	store  *storetest.Memory
	up     bool // etcd answers
	faulty bool // faults are drawn
	agents []*simAgent

	watches []*simWatch
	stops   []func() // end requests that are under way

	config    Config
	record    *simRecord
	length    time.Duration           // after which there are no more faults
	failing   int                     // percent of the rounds in which workers of an agent fail
	succeeded map[string]map[int]bool // the rounds in which the workers of an agent have succeeded, by its key
	vanished  bool                    // a machine has
	longest   time.Duration           // that etcd, or an agent, could not be reached, at most
	apart     []simApart

	story  *simStory                      // nil: the seed draws what happens
	trace  func(text string)              // nil: nobody reads it
	failed error                          // the first thing that was wrong
	mutate func(store.Txn) store.Txn      // changes what is asked of etcd, to see what the simulation finds
	alter  func(*simAgent, action) action // the same for what machines want done; nil: it is not
}

// simBegin is when all simulations begin.
var simBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newSimWorld(seed uint64) *simWorld {
	w := &simWorld{random: rand.New(rand.NewPCG(seed, 0)), now: simBegin, up: true, faulty: true, succeeded: make(map[string]map[int]bool)}
	w.setStore(storetest.NewMemory(w.random))
	return w
}

func (w *simWorld) setStore(s *storetest.Memory) {
	w.store = s
	s.Changed, s.Now = w.onChange, func() time.Time { return w.now }
	s.Mutate = func(t store.Txn) store.Txn {
		if w.mutate != nil {
			t = w.mutate(t)
		}
		return t
	}
	if w.record == nil {
		return
	}
	w.record.current = nil // or an earlier one
	if kv := s.Get(keysOf(DefaultPrefix, "job").current()); kv.Written > 0 {
		w.record.current = w.record.rounds[decoded[currentDoc](w, kv).ID]
	}
}

// fail notes that something is wrong.
func (w *simWorld) fail(format string, args ...any) {
	if w.failed == nil {
		w.failed = fmt.Errorf("after %v: %s", w.now.Sub(simBegin), fmt.Sprintf(format, args...))
		w.say("WRONG: %v", w.failed)
	}
}

func (w *simWorld) say(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%9.3f  ", w.now.Sub(simBegin).Seconds()) + fmt.Sprintf(format, args...))
	}
}

// A simApart is two agents that do not reach each other until some time.
type simApart struct {
	a, b  *simAgent
	until time.Time
}

// reaches reports whether an agent reaches the machine of another one.
func (w *simWorld) reaches(a, b *simAgent) bool {
	if b == nil || b.vanished {
		return false
	}
	for _, p := range w.apart {
		if w.now.Before(p.until) && (p.a == a && p.b == b || p.a == b && p.b == a) {
			return false
		}
	}
	return true
}

// A simEvent is something that happens at a time.
type simEvent struct {
	at     time.Time
	serial int // of two at one time the one that was planned first comes first
	do     func()
}

type simQueue []simEvent

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].serial < q[j].serial
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(e any)   { *q = append(*q, e.(simEvent)) }
func (q *simQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = simEvent{}
	*q = old[:len(old)-1]
	return last
}

func (w *simWorld) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *simWorld) at(t time.Time, do func()) {
	w.serial++
	heap.Push(&w.queue, simEvent{t, w.serial, do})
}

// run lets things happen until a time, or until is is true.
func (w *simWorld) run(until time.Time, is func() bool) {
	for len(w.queue) > 0 && w.failed == nil && !is() {
		if w.queue[0].at.After(until) {
			break
		}
		e := heap.Pop(&w.queue).(simEvent)
		w.now = e.at
		if w.up {
			w.store.Expire()
		}
		e.do()
	}
}

// chance is true so many times in a hundred; in a story, never.
func (w *simWorld) chance(percent int) bool { return w.story == nil && w.random.IntN(100) < percent }

// repeated is how late a request may be carried out a second time.
const repeated = 8 * time.Second

// between is a time between two; in a story, the one in the middle.
func (w *simWorld) between(least, most time.Duration) time.Duration {
	if w.story != nil {
		return least + (most-least)/2
	}
	return least + time.Duration(w.random.Int64N(int64(most-least)+1))
}

// latency is that of the network, one way.
func (w *simWorld) latency() time.Duration {
	if w.faulty && w.chance(5) {
		return w.between(0, 800*time.Millisecond)
	}
	return w.between(50*time.Microsecond, 2*time.Millisecond)
}

// A simCall is one call of a request under way.
type simCall struct {
	of     string // the request
	what   string
	by     time.Time // it fails then
	do     func(store.Store) (any, error)
	pause  time.Duration // instead of a call
	answer any
	err    error
}

type deadlineKey struct{}

var errBroken, errDown = errors.New("the connection is broken"), errors.New("etcd is down")

// A simStore is one request's way to etcd. Each call goes through it, takes its time, and may fail, or be carried out twice.
type simStore func(ctx context.Context, what string, call func(store.Store) (any, error)) (any, error)

func (s simStore) Read(ctx context.Context, queries ...store.Query) (store.Answer, error) {
	return answerOf[store.Answer](s(ctx, "read", func(s store.Store) (any, error) { return s.Read(ctx, queries...) }))
}

func (s simStore) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	return answerOf[store.Answer](s(ctx, "commit", func(s store.Store) (any, error) { return s.Commit(ctx, t) }))
}

func (s simStore) Keep(ctx context.Context, id store.Lease, ttl time.Duration) (store.Lease, time.Duration, error) {
	type kept struct {
		id  store.Lease
		ttl time.Duration
	}
	k, err := answerOf[kept](s(ctx, "keep", func(s store.Store) (any, error) {
		id, ttl, err := s.Keep(ctx, id, ttl)
		return kept{id, ttl}, err
	}))
	return k.id, k.ttl, err
}

func (simStore) Watch(context.Context, store.Range, func([]store.Event)) {
	panic("simWorld.watch does")
}

func (simStore) Close() error { return nil }

func answerOf[T any](answer any, err error) (is T, _ error) {
	if err == nil {
		is = answer.(T)
	}
	return is, err
}

// carryOut carries out a request of an agent, in virtual time, and then calls then, unless the agent is gone before.
func (w *simWorld) carryOut(a *simAgent, name string, do func(ctx context.Context, x *executor), then func()) {
	ctx := context.WithValue(context.Background(), deadlineKey{}, w.now.Add(callTimeout))
	next, stop := iter.Pull(iter.Seq[*simCall](func(yield func(*simCall) bool) {
		x := a.executor
		x.store = simStore(func(ctx context.Context, what string, call func(store.Store) (any, error)) (any, error) {
			c := &simCall{of: name, what: what, do: call, by: ctx.Value(deadlineKey{}).(time.Time)}
			if !yield(c) {
				return nil, context.Canceled
			}
			return c.answer, c.err
		})
		x.pause = func(_ context.Context, d time.Duration) { yield(&simCall{pause: d}) }
		x.within = func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
			by := w.now.Add(d)
			if all := ctx.Value(deadlineKey{}).(time.Time); all.Before(by) {
				by = all
			}
			return context.WithValue(ctx, deadlineKey{}, by), func() {}
		}
		x.awaitFreeRank = func(context.Context, int) { yield(&simCall{pause: w.between(0, rankInterval)}) }
		x.hasEnded = func(_ context.Context, key, _ string) bool {
			yield(&simCall{pause: w.latency()})
			other := w.agentOf(key)
			return other != nil && other.refuses()
		}
		do(ctx, &x)
	}))
	w.stops = append(w.stops, stop)
	var advance func()
	advance = func() {
		if a.gone {
			stop()
			return
		}
		c, more := next()
		switch {
		case !more:
			then()
		case c.do == nil:
			w.after(c.pause, advance)
		default:
			w.call(a, c, advance)
		}
	}
	advance()
}

// call brings a call to etcd and its answer back, or not.
func (w *simWorld) call(a *simAgent, c *simCall, then func()) {
	answered := false
	finish := func(answer any, err error) {
		if !answered {
			answered = true
			if c.answer, c.err = answer, err; w.now.After(c.by) {
				c.answer, c.err = nil, context.DeadlineExceeded
			}
			then()
		}
	}
	timeout := func() {
		if w.faulty && w.chance(40) { // the connection breaks
			w.after(w.between(0, time.Second), func() { finish(nil, errBroken) })
			return
		}
		w.at(latest(w.now, c.by), func() { finish(nil, context.DeadlineExceeded) })
	}
	carry := func() (any, error) { return c.do(w.store) }
	if !w.now.Before(c.by) {
		w.after(0, func() { finish(nil, context.DeadlineExceeded) })
		return
	}
	slow := time.Duration(0)
	if w.story != nil && c.of == w.story.slow && w.now.Sub(simBegin) >= w.story.slowAfter {
		slow = time.Second
	}
	w.after(w.latency()+slow, func() {
		switch {
		case answered:
		case a.cut || w.faulty && w.chance(1):
			timeout()
		case !w.up:
			w.after(w.between(0, 300*time.Millisecond), func() { finish(nil, errDown) })
		case w.story != nil && w.story.loses(a, c):
			w.say("%s: the answer to %s is lost", a.name, c.what)
			_, _ = carry()
			w.after(100*time.Millisecond, func() { finish(nil, errBroken) })
		default:
			answer, err := carry()
			if w.faulty && w.chance(2) { // it is asked twice, or a member carries the request out late
				w.after(w.between(0, repeated), func() {
					if w.up {
						w.say("%s: %s is carried out again", a.name, c.what)
						_, _ = carry()
					}
				})
			}
			if w.faulty && w.chance(2) {
				w.say("%s: the answer to %s is lost", a.name, c.what)
				timeout()
				return
			}
			w.after(w.latency(), func() {
				if a.cut {
					timeout()
					return
				}
				finish(answer, err)
			})
		}
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A simWatch is one watch of an agent.
type simWatch struct {
	agent   *simAgent
	keys    store.Range
	seen    int64 // the revision up to which it has heard
	changed func(events []store.Event)
	stopped bool
	planned bool // a delivery is
}

// watch begins a watch.
func (w *simWorld) watch(a *simAgent, keys store.Range, changed func([]store.Event)) *simWatch {
	s := &simWatch{agent: a, keys: keys, changed: changed}
	w.begin(s)
	return s
}

// begin begins a watch, perhaps anew. It brings what happens from then on.
func (w *simWorld) begin(s *simWatch) {
	w.after(w.latency(), func() {
		switch {
		case s.stopped || s.agent.gone:
		case s.agent.cut || !w.up:
			w.after(retryInterval, func() { w.begin(s) })
		default:
			s.seen = w.store.Rev()
			w.watches = append(w.watches, s)
			w.after(w.latency(), func() {
				if !s.stopped {
					s.changed(nil)
				}
			})
		}
	})
}

// onChange plans to tell those who watch.
func (w *simWorld) onChange(events []store.Event) {
	w.check(events)
	kept := w.watches[:0]
	for _, s := range w.watches {
		if s.stopped || s.agent.gone {
			continue
		}
		kept = append(kept, s)
		for _, e := range events {
			if s.keys.Has(e.Key) {
				w.plan(s, w.latency())
				break
			}
		}
	}
	w.watches = kept
}

func (w *simWorld) plan(s *simWatch, d time.Duration) {
	if !s.planned {
		s.planned = true
		w.after(d, func() { w.deliver(s) })
	}
}

// deliver brings what has happened since the last time. A watch that is cut off goes on later where it was; it begins anew if that has
// been compacted, or if it is lost.
func (w *simWorld) deliver(s *simWatch) {
	s.planned = false
	events, now, all := w.store.Since(s.seen, s.keys)
	switch {
	case s.stopped || s.agent.gone:
		return
	case s.agent.cut || !w.up:
		w.plan(s, w.between(100*time.Millisecond, time.Second))
		return
	case !all || w.faulty && w.chance(1):
		for i, other := range w.watches {
			if other == s {
				w.watches = append(w.watches[:i:i], w.watches[i+1:]...)
				break
			}
		}
		w.say("%s: the watch of %s is lost", s.agent.name, s.keys.First)
		w.after(retryInterval, func() { w.begin(s) })
		return
	}
	s.seen = max(s.seen, now)
	if len(events) > 0 {
		s.changed(events)
	}
}

// reconnect has watches go on after etcd was away.
func (w *simWorld) reconnect() {
	for _, s := range w.watches {
		w.plan(s, w.between(0, time.Second))
	}
}

func (w *simWorld) agentOf(key string) *simAgent {
	for _, a := range w.agents {
		if a.executor.key == key {
			return a
		}
	}
	return nil
}

// contents is all that etcd has, for people.
func (w *simWorld) contents() string {
	var b strings.Builder
	for _, kv := range w.store.Lookup(store.Range{End: "\xff"}) {
		fmt.Fprintf(&b, "  %s = %s (lease %x, revision %d)\n", kv.Key, kv.Value, kv.Lease, kv.Written)
	}
	return b.String()
}

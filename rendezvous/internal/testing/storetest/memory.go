// Package storetest is for tests: a store in memory, and a suite that every store must pass.
package storetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A Memory is a store in memory, with which the suite compares every other. Leases run out when somebody calls Expire.
type Memory struct {
	Now     func() time.Time            // may be replaced before the first use
	Changed func(events []store.Event)  // is told of each transaction that has written
	Mutate  func(t store.Txn) store.Txn // changes transactions, for tests of tests

	mu      sync.Mutex
	random  *rand.Rand // for the numbers of leases
	rev     int64
	lost    int64    // the last revision of which the history is lost
	keys    []string // sorted
	values  map[string]store.KV
	history []store.Event // in the order of revision
	leases  map[store.Lease]lease
	news    chan struct{} // is closed when there are events
}

type lease struct {
	ttl     time.Duration
	expires time.Time
}

// NewMemory returns an empty store.
func NewMemory(random *rand.Rand) *Memory {
	return &Memory{
		Now: time.Now, Changed: func([]store.Event) {}, Mutate: func(t store.Txn) store.Txn { return t },
		random: random, rev: 1, values: make(map[string]store.KV), leases: make(map[store.Lease]lease), news: make(chan struct{}),
	}
}

// Snapshot returns a copy of m, whose revision is higher by ahead.
func (m *Memory) Snapshot(ahead int64) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory(m.random)
	c.Now, c.Changed, c.Mutate, c.rev, c.lost = m.Now, m.Changed, m.Mutate, m.rev+ahead, m.lost
	c.keys, c.history = slices.Clone(m.keys), slices.Clone(m.history)
	c.values, c.leases = maps.Clone(m.values), maps.Clone(m.leases)
	return c
}

// Get returns a key and its value.
func (m *Memory) Get(key string) store.KV {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key]
}

// Lookup returns the keys of a range.
func (m *Memory) Lookup(r store.Range) []store.KV {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lookup(r)
}

func (m *Memory) lookup(r store.Range) (found []store.KV) {
	i, _ := slices.BinarySearch(m.keys, r.First)
	for ; i < len(m.keys) && r.Has(m.keys[i]); i++ {
		found = append(found, m.values[m.keys[i]])
	}
	return found
}

// Since returns what has happened to keys after a revision. It reports false, and returns nothing, if some of that is lost.
func (m *Memory) Since(rev int64, r store.Range) (events []store.Event, now int64, all bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rev < m.lost {
		return nil, m.rev, false
	}
	for _, e := range m.history {
		if e.Written > rev && r.Has(e.Key) {
			events = append(events, e)
		}
	}
	return events, m.rev, true
}

// Rev is the present revision.
func (m *Memory) Rev() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rev
}

// Leases returns how many leases there are.
func (m *Memory) Leases() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.leases)
}

// Forget loses the history.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost, m.history = m.rev, nil
}

// Extend gives all leases their full time again, as an etcd does that has another leader.
func (m *Memory) Extend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.leases {
		m.leases[id] = lease{l.ttl, m.Now().Add(l.ttl)}
	}
}

// Expire ends the leases whose time is up.
func (m *Memory) Expire() {
	m.mu.Lock()
	now := m.Now()
	var ids []store.Lease
	for id, l := range m.leases {
		if !now.Before(l.expires) {
			ids = append(ids, id)
		}
	}
	m.mu.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		m.End(id)
	}
}

// End ends a lease, if there is one.
func (m *Memory) End(id store.Lease) {
	m.mu.Lock()
	_, is := m.leases[id]
	delete(m.leases, id)
	var events []store.Event
	if is {
		for _, kv := range m.lookup(store.Range{First: "", End: "\xff"}) {
			if kv.Lease == id {
				events = append(events, m.remove(kv.Key))
			}
		}
		m.wrote(events)
	}
	m.mu.Unlock()
	m.notify(events)
}

// Read implements [store.Store].
func (m *Memory) Read(_ context.Context, queries ...store.Query) (store.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return store.Answer{Rev: m.rev, Done: true, Found: m.find(queries)}, nil
}

func (m *Memory) find(queries []store.Query) (all []store.Found) {
	for _, q := range queries {
		kvs := m.lookup(q.Range)
		found := store.Found{Count: len(kvs)}
		for _, kv := range kvs {
			if kv.Written < q.Since || q.Limit > 0 && len(found.KVs) == q.Limit {
				continue
			}
			if q.OnlyKeys {
				kv.Value, kv.Lease = "", 0
			}
			found.KVs = append(found.KVs, kv)
		}
		all = append(all, found)
	}
	return all
}

// Commit implements [store.Store].
func (m *Memory) Commit(_ context.Context, t store.Txn) (a store.Answer, err error) {
	t = m.Mutate(t)
	a, events, err := m.commit(t)
	m.notify(events)
	if err == nil && a.Done && t.End != 0 {
		m.End(t.End)
	}
	return a, err
}

func (m *Memory) commit(t store.Txn) (a store.Answer, events []store.Event, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.Done = !slices.ContainsFunc(t.When, func(c store.Cond) bool { return !m.isTrue(c) })
	if !a.Done {
		a.Rev, a.Found = m.rev, m.find(t.Else)
		return a, nil, nil
	}
	for _, p := range t.Puts {
		if _, is := m.leases[p.Lease]; p.Lease != 0 && !is {
			return store.Answer{}, nil, store.ErrNoLease
		}
	}
	for _, r := range t.Deletes {
		for _, kv := range m.lookup(r) {
			events = append(events, m.remove(kv.Key))
		}
	}
	for _, p := range t.Puts {
		events = append(events, m.put(p))
	}
	m.wrote(events)
	a.Rev = m.rev
	return a, events, nil
}

// isTrue reports whether a condition holds for all keys that it is about.
func (m *Memory) isTrue(c store.Cond) bool {
	kvs := m.lookup(c.Range)
	if len(kvs) == 0 {
		kvs = []store.KV{{}}
	}
	return !slices.ContainsFunc(kvs, func(kv store.KV) bool {
		switch c.Kind {
		case store.IsWritten:
			return kv.Written != c.Value
		case store.IsLeased:
			return int64(kv.Lease) != c.Value
		case store.Exists:
			return kv.Written == 0
		}
		panic(fmt.Sprint("a condition of kind ", c.Kind))
	})
}

func (m *Memory) put(p store.Put) store.Event {
	kv := store.KV{Key: p.Key, Value: p.Value, Lease: p.Lease, Created: m.rev + 1, Written: m.rev + 1}
	if before := m.values[p.Key]; before.Written > 0 {
		kv.Created = before.Created
	} else {
		i, _ := slices.BinarySearch(m.keys, p.Key)
		m.keys = slices.Insert(m.keys, i, p.Key)
	}
	m.values[p.Key] = kv
	return store.Event{KV: kv}
}

func (m *Memory) remove(key string) store.Event {
	i, _ := slices.BinarySearch(m.keys, key)
	m.keys = slices.Delete(m.keys, i, i+1)
	delete(m.values, key)
	return store.Event{KV: store.KV{Key: key, Written: m.rev + 1}, Deleted: true}
}

// wrote ends a transaction: if it has written something, it has a revision, and those who watch are told.
func (m *Memory) wrote(events []store.Event) {
	if len(events) > 0 {
		m.rev++
		m.history = append(m.history, events...)
		close(m.news)
		m.news = make(chan struct{})
	}
}

func (m *Memory) notify(events []store.Event) {
	if len(events) > 0 {
		m.Changed(events)
	}
}

// Keep implements [store.Store].
func (m *Memory) Keep(_ context.Context, id store.Lease, ttl time.Duration) (store.Lease, time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, is := m.leases[id]
	switch {
	case id == 0:
		id, l.ttl = store.Lease(m.random.Int64N(1<<40)+1), ttl
	case !is:
		return 0, 0, store.ErrNoLease
	case ttl == 0:
		return id, l.expires.Sub(m.Now()), nil
	}
	l.expires = m.Now().Add(l.ttl)
	m.leases[id] = l
	return id, l.ttl, nil
}

// Watch implements [store.Store].
func (m *Memory) Watch(ctx context.Context, keys store.Range, changed func([]store.Event)) {
	rev := m.Rev()
	changed(nil)
	for ctx.Err() == nil {
		m.mu.Lock()
		news := m.news
		m.mu.Unlock()
		events, now, all := m.Since(rev, keys)
		if rev = now; !all || len(events) > 0 {
			changed(events)
		}
		select {
		case <-ctx.Done():
		case <-news:
		}
	}
}

// Close does nothing.
func (m *Memory) Close() error { return nil }

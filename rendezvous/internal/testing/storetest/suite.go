package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// Run tests a store that is empty, and is closed by whoever has made it.
func Run(t *testing.T, s store.Store) {
	t.Run("SameAsInMemory", func(t *testing.T) { sameAsInMemory(t, s) })
	t.Run("Leases", func(t *testing.T) { leases(t, s) })
	t.Run("Watch", func(t *testing.T) { watch(t, s) })
}

// sameAsInMemory has random transactions carried out by a store and by a Memory, which must answer the same.
func sameAsInMemory(t *testing.T, s store.Store) {
	seed := testkit.Seed()
	random := rand.New(rand.NewPCG(seed, 0))
	m := NewMemory(random)
	stores, ids := []store.Store{s, m}, [][]store.Lease{nil, nil}
	for step := range 600 {
		if random.IntN(10) == 0 || len(ids[0]) == 0 {
			for i, s := range stores {
				id, _, err := s.Keep(t.Context(), 0, 1000*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				ids[i] = append(ids[i], id)
			}
		}
		d := drawer{random, m.Rev(), len(ids[0])}
		queries, txn := d.queries(), d.txn()
		var texts [2]string
		for i, s := range stores {
			committed, err := s.Commit(t.Context(), translated(txn, ids[i]))
			read, readErr := s.Read(t.Context(), queries...)
			texts[i] = fmt.Sprint(show(committed, ids[i]), err, show(read, ids[i]), readErr)
		}
		if texts[0] != texts[1] {
			t.Fatalf("seed %d, step %d: %+v is answered\n%s\nand in memory\n%s", seed, step, txn, texts[0], texts[1])
		}
	}
}

// A drawer draws what is to be asked. A lease is a number: the index of one, counted from 1.
type drawer struct {
	random *rand.Rand
	rev    int64
	leases int
}

func (d drawer) key() string       { return fmt.Sprint("/k", d.random.IntN(3), "/", d.random.IntN(4)) }
func (d drawer) prefix() string    { return fmt.Sprint("/k", d.random.IntN(3), "/") }
func (d drawer) past() int64       { return max(0, d.rev-d.random.Int64N(20)) }
func (d drawer) chance(n int) bool { return d.random.IntN(n) == 0 }

func (d drawer) keys() store.Range {
	if d.chance(2) {
		return store.Below(d.prefix())
	}
	return store.Key(d.key())
}

func (d drawer) queries() (all []store.Query) {
	for range 1 + d.random.IntN(3) {
		q := store.Query{Range: d.keys(), Limit: d.random.IntN(3), OnlyKeys: d.chance(3)}
		if d.chance(3) {
			q.Since = d.past()
		}
		all = append(all, q)
	}
	return all
}

func (d drawer) txn() (t store.Txn) {
	for range d.random.IntN(3) {
		c := store.Cond{Range: d.keys()}
		switch d.random.IntN(4) {
		case 0:
			c.Kind = store.Exists
		case 1:
			c.Kind, c.Value = store.IsLeased, int64(d.random.IntN(d.leases+1))
		case 2:
			c.Value = d.past()
		}
		t.When = append(t.When, c)
	}
	untouched := map[string]bool{"/k0/": true, "/k1/": true, "/k2/": true}
	for range d.random.IntN(4) {
		key, prefix := d.key(), d.prefix()
		switch {
		case d.chance(4) && untouched[prefix]:
			t.Deletes = append(t.Deletes, store.Below(prefix))
			untouched[prefix] = false
		case untouched[key[:4]]: // one key below each prefix
			untouched[key[:4]] = false
			if d.chance(4) {
				t.Deletes = append(t.Deletes, store.Key(key))
				continue
			}
			lease := store.Lease(d.random.IntN(d.leases + 1))
			t.Puts = append(t.Puts, store.Put{Key: key, Value: fmt.Sprint(d.random.IntN(100)), Lease: lease})
		}
	}
	t.Else = d.queries()
	if d.chance(10) && len(t.Puts) > 0 {
		t.End = store.Lease(1 + d.random.IntN(d.leases))
	}
	return t
}

// translated is a transaction with the leases that a store has given out.
func translated(t store.Txn, ids []store.Lease) store.Txn {
	id := func(n int64) store.Lease {
		if n == 0 {
			return 0
		}
		return ids[n-1]
	}
	t.Puts, t.When, t.End = append([]store.Put(nil), t.Puts...), append([]store.Cond(nil), t.When...), id(int64(t.End))
	for i, p := range t.Puts {
		t.Puts[i].Lease = id(int64(p.Lease))
	}
	for i, c := range t.When {
		if c.Kind == store.IsLeased {
			t.When[i].Value = int64(id(c.Value))
		}
	}
	return t
}

// show is an answer, with leases as they are numbered here.
func show(a store.Answer, ids []store.Lease) string {
	number := make(map[store.Lease]store.Lease)
	for i, id := range ids {
		number[id] = store.Lease(i + 1)
	}
	for _, f := range a.Found {
		for i, kv := range f.KVs {
			f.KVs[i].Lease = number[kv.Lease]
		}
	}
	return strings.ReplaceAll(fmt.Sprintf("%+v", a), "[]", "")
}

// leases end when they are not renewed, and then their keys are gone.
func leases(t *testing.T, s store.Store) {
	if _, _, err := s.Keep(t.Context(), 4711, time.Minute); !errors.Is(err, store.ErrNoLease) {
		t.Errorf("a lease that is none can be renewed: %v", err)
	}
	if _, _, err := s.Keep(t.Context(), 4711, 0); !errors.Is(err, store.ErrNoLease) {
		t.Errorf("a lease that is none has its time: %v", err)
	}
	txn := store.Txn{Puts: []store.Put{{Key: "/leased", Lease: 4711}}}
	if _, err := s.Commit(t.Context(), txn); !errors.Is(err, store.ErrNoLease) {
		t.Errorf("something can be written under it: %v", err)
	}
	if _, err := s.Commit(t.Context(), store.Txn{End: 4711}); err != nil {
		t.Errorf("it cannot be ended: %v", err)
	}
	id, ttl, err := s.Keep(t.Context(), 0, 2*time.Second)
	if err != nil || ttl < time.Second {
		t.Fatalf("a lease for %v: %v", ttl, err)
	}
	if _, again, err := s.Keep(t.Context(), id, time.Hour); err != nil || again != ttl {
		t.Errorf("renewed, it has %v, and had %v: %v", again, ttl, err)
	}
	if _, left, err := s.Keep(t.Context(), id, 0); err != nil || left > ttl {
		t.Errorf("of %v there are %v left: %v", ttl, left, err)
	}
	txn.Puts[0].Lease = id
	if _, err := s.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if m, ok := s.(*Memory); ok {
			m.Expire()
		}
		switch answer, err := s.Read(t.Context(), store.Query{Range: store.Key("/leased")}); {
		case err != nil:
			t.Fatal(err)
		case answer.Found[0].Count == 0:
			return
		case time.Since(begun) > time.Minute:
			t.Fatal("a lease that is not renewed goes on")
		}
	}
}

// watch hears of all changes in their order, and of no others.
func watch(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan []store.Event, 100)
	var all []store.Event
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, store.Below("/watched/"), func(events []store.Event) { heard <- events })
	}()
	if first := <-heard; len(first) > 0 {
		t.Errorf("it begins with %+v", first)
	}
	for _, txn := range []store.Txn{
		{Puts: []store.Put{{Key: "/watched/a", Value: "1"}, {Key: "/other", Value: "x"}}},
		{Puts: []store.Put{{Key: "/watched/a", Value: "2"}, {Key: "/watched/b", Value: "3"}}},
		{Deletes: []store.Range{store.Below("/watched/")}},
	} {
		if _, err := s.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	for len(all) < 5 {
		all = append(all, <-heard...)
	}
	cancel()
	<-ended
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%s=%s %d %t", e.Key[len("/watched/"):], e.Value, e.Written-all[0].Written, e.Deleted))
	}
	if want := []string{"a=1 0 false", "a=2 1 false", "b=3 1 false", "a= 2 true", "b= 2 true"}; !slices.Equal(got, want) {
		t.Errorf("it hears %q, want %q", got, want)
	}
}

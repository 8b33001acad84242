package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/comm/internal/store/memstore"
	"github.com/gorun/gorun/comm/store"
)

// Of a node one rank tells: the first that has come.
func TestOneRankOfANodeTells(t *testing.T) {
	kv := memstore.New()
	defer kv.Close()
	ctx := t.Context()
	for _, rank := range []int{0, 3, 5} {
		if err := kv.Set(ctx, fmt.Sprintf("2/rank/%d", rank), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		rank, local int
		want        string
	}{
		{0, 0, "ranks 1, 2, 4, 6, 7: 3 of 8 ranks have come to here"},
		{3, 1, "ranks 1, 2, 4, 6, 7: 3 of 8 ranks have come to here"}, // rank 2, the first of its node, has not come
		{5, 3, ""}, // rank 3 tells
	} {
		p := place{rank: c.rank, size: 8, local: c.local, meet: "here"}
		if got := p.missing(ctx, kv, 2); got != c.want {
			t.Errorf("rank %d says %q, want %q", c.rank, got, c.want)
		}
	}
	all := place{rank: 0, size: 1, meet: "here"}
	if err := kv.Set(ctx, "2/world", nil); err != nil {
		t.Fatal(err)
	}
	if got := all.missing(ctx, kv, 2); got != "" {
		t.Errorf("nobody is missing, and it says %q", got)
	}
}

// deafStore never returns from setting one key, as if the process were stopped there.
type deafStore struct {
	store.Store
	key string
}

func (s deafStore) Set(ctx context.Context, key string, value []byte) error {
	if key == s.key {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.Set(ctx, key, value)
}

// A rank that ends or stops anywhere on its way into the world is named while the others wait, and in their errors.
func TestInitNamesWhoStopsOnTheWay(t *testing.T) {
	for _, c := range []struct {
		key           string // at which the rank stops
		stopped, node int    // the rank; how many ranks a node has
		tell, wait    []int  // who says so; who ends with an error
	}{
		{"1/rank/0", 0, 1, []int{1, 2}, []int{1, 2}},
		{"1/rank/0", 0, 3, []int{1}, []int{1, 2}},
		{"1/rank/1", 1, 1, []int{0, 2}, []int{0, 2}},
		{"1/rank/1", 1, 3, []int{0}, []int{0, 2}},
		{"1/world", 0, 1, []int{1, 2}, []int{1, 2}},
		{"1/world", 0, 3, []int{1}, []int{1, 2}},
		{"1/seen/1", 1, 1, []int{0}, []int{0}},
		{"1/seen/1", 1, 3, []int{0}, []int{0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			kv := memstore.New()
			defer kv.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var errs [3]error
			var places [3]place
			var wg sync.WaitGroup
			for rank := range places {
				places[rank] = place{rank: rank, size: 3, local: rank % c.node, meet: "here"}
				wg.Go(func() {
					var s store.Store = kv
					if rank == c.stopped {
						s = deafStore{s, c.key}
					}
					_, errs[rank] = meet(ctx, s, 1, places[rank], self("127.0.0.1:1"))
				})
			}
			time.Sleep(time.Second)
			want := fmt.Sprintf("rank %d: 2 of 3 ranks have come to here", c.stopped)
			var tell []int
			for rank, p := range places {
				if rank != c.stopped && slices.Contains(c.wait, rank) && p.missing(ctx, kv, 1) == want {
					tell = append(tell, rank)
				}
			}
			if !slices.Equal(tell, c.tell) {
				t.Errorf("rank %d of nodes of %d stops at %s: ranks %v say %q, want ranks %v to", c.stopped, c.node, c.key, tell, want, c.tell)
			}
			wg.Wait()
			for _, rank := range c.wait {
				missing, ok := errors.AsType[*MissingError](errs[rank])
				if !ok || !slices.Equal(missing.Missing, []int{c.stopped}) {
					t.Errorf("rank %d stops at %s: rank %d has the error %v", c.stopped, c.key, rank, errs[rank])
				}
			}
		})
	}
}

func TestInRanges(t *testing.T) {
	many, run := []int{}, []int{}
	for r := 1; r < 200; r++ {
		run = append(run, r)
	}
	for r := range 40 {
		many = append(many, 2*r)
	}
	for want, ranks := range map[string][]int{
		"rank 3":             {3},
		"ranks 3, 4":         {3, 4},
		"ranks 0, 3 to 5, 7": {0, 3, 4, 5, 7},
		"ranks 1 to 199":     run,
		"ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 and 24 more": many,
	} {
		if got := inRanges(ranks); got != want {
			t.Errorf("%v: %s", ranks, got)
		}
	}
}

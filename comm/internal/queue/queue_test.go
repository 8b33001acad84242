package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueue compares a queue with a slice.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[*int]
		var want []*int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				item := new(int)
				q.Push(item)
				want = append(want, item)
			},
			"insert": func(t *rapid.T) {
				i, item := rapid.IntRange(0, len(want)).Draw(t, "place"), new(int)
				q.Insert(i, item)
				want = slices.Insert(want, i, item)
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("it is empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "item")
				q.Remove(i)
				want = slices.Delete(want, i, i+1)
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "items")
				if taken := q.Take(n); !slices.Equal(taken, want[:n]) {
					t.Fatalf("took %v, want %v", taken, want[:n])
				} else {
					clear(taken)
				}
				want = want[n:]
			},
			"remove some": func(t *rapid.T) {
				gone := make(map[*int]bool)
				for i, item := range want {
					gone[item] = rapid.Bool().Draw(t, fmt.Sprint("item ", i))
				}
				q.RemoveFunc(func(item *int) bool { return gone[item] })
				want = slices.DeleteFunc(want, func(item *int) bool { return gone[item] })
			},
			"": func(t *rapid.T) {
				if !slices.Equal(q.All(), want) || q.Len() != len(want) {
					t.Fatalf("it has %v, want %v", q.All(), want)
				}
				for i, item := range q.items[:cap(q.items)] {
					if unused := i < q.removed || i >= len(q.items); unused && item != nil {
						t.Fatalf("it keeps what has been removed: %v", item)
					}
				}
			},
		})
	})
}

// TestQueueKeepsItsMemory: a queue that does not grow does not allocate.
func TestQueueKeepsItsMemory(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		var q Queue[int]
		for i := range 3 * n {
			q.Push(i)
		}
		for q.Len() > n {
			q.Remove(0)
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			q.Remove(q.Len() / 2)
			q.Push(0)
		}); allocs != 0 {
			t.Errorf("%d items: %v allocations", n, allocs)
		}
	}
}

// BenchmarkQueue removes the oldest of n items. The time does not depend on n.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 1000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Queue[*int]
			item := new(int)
			for range n {
				q.Push(item)
			}
			for b.Loop() {
				q.Remove(0)
				q.Push(item)
			}
		})
	}
}

package matching

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueue compares a queue with a slice.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[*int]
		var want []*int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				item := new(int)
				q.push(item)
				want = append(want, item)
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("it is empty")
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "item")
				q.remove(i)
				want = slices.Delete(want, i, i+1)
			},
			"remove some": func(t *rapid.T) {
				gone := make(map[*int]bool)
				for i, item := range want {
					gone[item] = rapid.Bool().Draw(t, fmt.Sprint("item ", i))
				}
				q.removeFunc(func(item *int) bool { return gone[item] })
				want = slices.DeleteFunc(want, func(item *int) bool { return gone[item] })
			},
			"": func(t *rapid.T) {
				if !slices.Equal(q.all(), want) || q.len() != len(want) {
					t.Fatalf("it has %v, want %v", q.all(), want)
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
		var q queue[int]
		for i := range 3 * n {
			q.push(i)
		}
		for q.len() > n {
			q.remove(0)
		}
		if allocs := testing.AllocsPerRun(1000, func() {
			q.remove(q.len() / 2)
			q.push(0)
		}); allocs != 0 {
			t.Errorf("%d items: %v allocations", n, allocs)
		}
	}
}

// BenchmarkQueue removes the oldest of n items. The time does not depend on n.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 1000, 50_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q queue[*int]
			item := new(int)
			for range n {
				q.push(item)
			}
			for b.Loop() {
				q.remove(0)
				q.push(item)
			}
		})
	}
}

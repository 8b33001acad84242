// Package queue has a queue in which items may also be removed from the middle. It does not allocate as long as it does
// not grow.
package queue

import "slices"

// A Queue holds items in the order in which they came. Removing an item moves those before it, not those behind it: it
// costs no more than the search from the front that found it.
type Queue[T any] struct {
	items   []T
	removed int // items at the front that have been removed
}

// Len is the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.removed }

// All returns the items, oldest first. The slice is good until the queue changes.
func (q *Queue[T]) All() []T { return q.items[q.removed:] }

// Push adds an item at the end.
func (q *Queue[T]) Push(item T) {
	if len(q.items) == cap(q.items) && q.removed > len(q.items)/2 {
		n := copy(q.items, q.All())
		clear(q.items[n:])
		q.items, q.removed = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// Insert makes item the one at i of All.
func (q *Queue[T]) Insert(i int, item T) {
	q.Push(item)
	copy(q.All()[i+1:], q.All()[i:])
	q.All()[i] = item
}

// Remove removes item i of All.
func (q *Queue[T]) Remove(i int) {
	items := q.All()
	copy(items[1:], items[:i])
	clear(q.Take(1)) // the queue must not keep its memory
}

// Take takes the first n items out and returns them. They are good until the queue changes, and the caller clears them.
func (q *Queue[T]) Take(n int) []T {
	taken := q.All()[:n]
	if q.removed += n; q.removed == len(q.items) {
		q.items, q.removed = q.items[:0], 0
	}
	return taken
}

// RemoveFunc removes the items for which remove is true.
func (q *Queue[T]) RemoveFunc(remove func(item T) bool) {
	kept := slices.DeleteFunc(q.All(), remove)
	if q.items = q.items[:q.removed+len(kept)]; len(kept) == 0 {
		q.items, q.removed = q.items[:0], 0
	}
}

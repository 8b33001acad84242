package matching

import "slices"

// A queue holds items in the order in which they came. Removing an item moves those before it, not those behind it: it costs no
// more than the search from the front that found it.
type queue[T any] struct {
	items   []T
	removed int // items at the front that have been removed
}

func (q *queue[T]) len() int { return len(q.items) - q.removed }

// all returns the items, oldest first. The slice is good until the queue changes.
func (q *queue[T]) all() []T { return q.items[q.removed:] }

func (q *queue[T]) push(item T) {
	if len(q.items) == cap(q.items) && q.removed > len(q.items)/2 {
		n := copy(q.items, q.all())
		clear(q.items[n:])
		q.items, q.removed = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

// remove removes item i of all.
func (q *queue[T]) remove(i int) {
	items := q.all()
	copy(items[1:], items[:i])
	clear(items[:1]) // the queue must not keep its memory
	if q.removed++; q.removed == len(q.items) {
		q.items, q.removed = q.items[:0], 0
	}
}

// removeFunc removes the items for which remove is true.
func (q *queue[T]) removeFunc(remove func(item T) bool) {
	kept := slices.DeleteFunc(q.all(), remove)
	if q.items = q.items[:q.removed+len(kept)]; len(kept) == 0 {
		q.items, q.removed = q.items[:0], 0
	}
}

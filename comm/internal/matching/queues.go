package matching

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/queue"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Queues are the two queues of one communicator. R is the caller's type of a receive.
type Queues[R comparable] struct {
	posted     queue.Queue[posted[R]] // oldest first
	unexpected unexpectedMessages
}

// A posted is a receive or probe in the queue, with its pattern, so that a search reads no other memory.
type posted[R comparable] struct {
	Pattern
	isProbe bool
	receive R
}

// IsEmpty reports whether both queues are empty.
func (q *Queues[R]) IsEmpty() bool { return q.posted.Len() == 0 && q.unexpected.isEmpty() }

// Post makes receive wait for a message.
func (q *Queues[R]) Post(want Pattern, isProbe bool, receive R) {
	q.posted.Push(posted[R]{want, isProbe, receive})
}

// Cancel takes back a receive, and reports whether it was posted.
func (q *Queues[R]) Cancel(receive R) bool {
	i := slices.IndexFunc(q.posted.All(), func(p posted[R]) bool { return p.receive == receive })
	if i < 0 {
		return false
	}
	q.posted.Remove(i)
	return true
}

// CancelAll takes back all receives and probes.
func (q *Queues[R]) CancelAll() { q.posted = queue.Queue[posted[R]]{} }

// Receive returns the oldest receive that matches the message h from source, and its place for TakeReceive; the place
// is -1 if there is none.
func (q *Queues[R]) Receive(h *wire.Header, source int) (receive R, place int) {
	all := q.posted.All()
	for i := range all {
		if p := &all[i]; !p.isProbe && p.Matches(h, source) {
			return p.receive, i
		}
	}
	return receive, -1
}

// TakeReceive takes the receive at place out of its queue.
func (q *Queues[R]) TakeReceive(place int) { q.posted.Remove(place) }

// Keep queues m, which matches no receive. It takes out and returns the probes that match it.
func (q *Queues[R]) Keep(m *Message) (probes []R) {
	q.unexpected.push(m)
	q.posted.RemoveFunc(func(p posted[R]) bool {
		found := p.isProbe && p.Matches(&m.Header, m.Source)
		if found {
			probes = append(probes, p.receive)
		}
		return found
	})
	return probes
}

// Message returns the oldest message that matches want, and its place for TakeMessage, or nil. If whole is set, it
// skips messages of which only the RTS has come.
func (q *Queues[R]) Message(want Pattern, whole bool) (*Message, Place) {
	return q.unexpected.find(want, whole)
}

// TakeMessage takes the message at place out of its queue.
func (q *Queues[R]) TakeMessage(place Place) { q.unexpected.remove(place) }

// EachOfCollectives calls do with the unexpected messages of collectives up to number last, until it returns an error.
// Only then may do change the queues.
func (q *Queues[R]) EachOfCollectives(last uint64, do func(m *Message) error) error {
	return q.unexpected.eachOfCollectives(last, do)
}

// Unexpected returns the unexpected messages: first those point to point, oldest first, then those of collectives, of
// each source oldest first.
func (q *Queues[R]) Unexpected() []*Message { return q.unexpected.all() }

// Clear empties the queue of unexpected messages, and returns them.
func (q *Queues[R]) Clear() []*Message {
	all := q.unexpected.all()
	q.unexpected = unexpectedMessages{}
	return all
}

package matching

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/queue"
	"github.com/gorun/gorun/comm/internal/wire"
)

// Unexpected messages of collectives have a list for each source. A rank may be thousands of collectives ahead, and a
// search for another rank's message skips all of that.
type unexpectedMessages struct {
	pointToPoint list
	collective   map[int]*list // by source
	nonEmpty     []*list       // of collective
}

// A list has messages, oldest first. Of those of collectives, Seq never decreases: a source carries out one collective
// of a communicator at a time.
type list struct {
	queue.Queue[*Message]
	index int // in nonEmpty
}

// A Place is where a message is in the queues, until they change.
type Place struct {
	list *list
	i    int
}

func (u *unexpectedMessages) isEmpty() bool { return u.pointToPoint.Len() == 0 && len(u.nonEmpty) == 0 }

// listOf returns the list of all messages that want can match, or nil.
func (u *unexpectedMessages) listOf(want Pattern) *list {
	if want.Seq > 0 {
		return u.collective[want.Source]
	}
	return &u.pointToPoint
}

// find returns the oldest message that matches want, and its place.
func (u *unexpectedMessages) find(want Pattern, whole bool) (*Message, Place) {
	in := u.listOf(want)
	if in == nil {
		return nil, Place{}
	}
	for i, m := range in.All() {
		if want.Matches(&m.Header, m.Source) && (!whole || m.Kind == wire.Eager) {
			return m, Place{in, i}
		}
	}
	return nil, Place{}
}

func (u *unexpectedMessages) push(m *Message) {
	if m.Seq == 0 {
		u.pointToPoint.Push(m)
		return
	}
	in := u.collective[m.Source]
	if in == nil {
		if u.collective == nil {
			u.collective = make(map[int]*list)
		}
		in = new(list)
		u.collective[m.Source] = in
	}
	if in.Len() == 0 {
		in.index = len(u.nonEmpty)
		u.nonEmpty = append(u.nonEmpty, in)
	}
	in.Push(m)
}

// remove removes the message at p. A list that becomes empty leaves nonEmpty, and the last one there takes its place.
func (u *unexpectedMessages) remove(p Place) {
	p.list.Remove(p.i)
	if p.list == &u.pointToPoint || p.list.Len() > 0 {
		return
	}
	last := len(u.nonEmpty) - 1
	moved := u.nonEmpty[last]
	u.nonEmpty[p.list.index], moved.index = moved, p.list.index
	u.nonEmpty[last] = nil
	u.nonEmpty = u.nonEmpty[:last]
}

// eachOfCollectives calls do with the messages of collectives up to number last, until it returns an error.
func (u *unexpectedMessages) eachOfCollectives(last uint64, do func(m *Message) error) error {
	for _, in := range u.nonEmpty {
		for _, m := range in.All() {
			if m.Seq > last {
				break // as all that follow
			}
			if err := do(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// all returns all messages: first those point to point, oldest first, then those of collectives, of each source oldest
// first.
func (u *unexpectedMessages) all() []*Message {
	all := slices.Clone(u.pointToPoint.All())
	for _, in := range u.nonEmpty {
		all = append(all, in.All()...)
	}
	return all
}

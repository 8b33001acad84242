package matching

import "github.com/gorun/gorun/comm/internal/queue"

// An unexpected has the unexpected messages of a communicator. Those of collectives are apart, by source: a rank can be thousands of collectives
// ahead, and nobody has to search through that for the message of another rank, or for one point to point.
type unexpected struct {
	transfers list // messages point to point
	chunks    map[int]*list
	sources   []*list // those of chunks that have messages
}

// A list has messages, oldest first. A source sends what belongs to a collective before what belongs to the next one.
type list struct {
	queue.Queue[*Message]
	at int // where it is in sources
}

// A Place is where a message is in the queues, until they change.
type Place struct {
	in *list
	at int
}

// listOf returns where messages are that want matches.
func (u *unexpected) listOf(want Pattern) *list {
	if want.Seq > 0 {
		return u.chunks[want.Source]
	}
	return &u.transfers
}

// find returns the oldest message that matches want, and its place.
func (u *unexpected) find(want Pattern, whole bool) (*Message, Place) {
	in := u.listOf(want)
	if in == nil {
		return nil, Place{}
	}
	for i, m := range in.All() {
		if want.Matches(&m.Header, m.Source) && (!whole || m.isWhole()) {
			return m, Place{in, i}
		}
	}
	return nil, Place{}
}

func (u *unexpected) push(m *Message) {
	if m.Seq == 0 {
		u.transfers.Push(m)
		return
	}
	in := u.chunks[m.Source]
	if in == nil {
		if u.chunks == nil {
			u.chunks = make(map[int]*list)
		}
		in = new(list)
		u.chunks[m.Source] = in
	}
	if in.Len() == 0 {
		in.at = len(u.sources)
		u.sources = append(u.sources, in)
	}
	in.Push(m)
}

// remove removes the message at p.
func (u *unexpected) remove(p Place) {
	p.in.Remove(p.at)
	if p.in == &u.transfers || p.in.Len() > 0 {
		return
	}
	last := len(u.sources) - 1
	u.sources[p.in.at] = u.sources[last]
	u.sources[p.in.at].at = p.in.at
	u.sources[last] = nil
	u.sources = u.sources[:last]
}

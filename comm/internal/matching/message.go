// Package matching has the two queues of a communicator: posted receives, which no message has matched yet, and
// unexpected messages, which no receive has matched yet. They match by source and tag, the oldest first (MPI's
// non-overtaking rule); in a collective, by source and sequence number. The package is pure: package endpoint owns the
// queues, and does what follows from a match.
package matching

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/gorun/gorun/comm/internal/wire"
)

// AnySource and AnyTag match every source and every tag.
const (
	AnySource = -1
	AnyTag    = -1
)

// A Pattern says which messages a receive or a probe matches. Seq is the number of a collective, whose Source is a
// rank, or 0.
type Pattern struct {
	Source int
	Tag    int32
	Seq    uint64
}

// Matches reports whether the message h from source matches p.
func (p *Pattern) Matches(h *wire.Header, source int) bool {
	return p.Seq == h.Seq && (p.Source == source || p.Source == AnySource) && (p.Tag == h.Tag || p.Tag == AnyTag && p.Seq == 0)
}

// A Message is one that has arrived. Of an RTS, the payload is still at the sender.
type Message struct {
	wire.Header
	Source  int
	Payload []byte
}

// messages are free messages, by the logarithm of their capacity, which is at most wire.LongestChunk.
var messages [21]sync.Pool

// NewMessage returns a message from source, with room for the payload that follows h.
func NewMessage(h wire.Header, source int) *Message {
	size := 0
	if h.Kind == wire.Eager {
		size = int(h.Size)
	}
	if size > wire.LongestChunk { // to oneself
		return &Message{Header: h, Source: source, Payload: make([]byte, size)}
	}
	class := bits.Len(uint(max(size, 1) - 1))
	m, _ := messages[class].Get().(*Message)
	if m == nil {
		m = newMessages(class)
	}
	m.Header, m.Source, m.Payload = h, source, m.Payload[:size]
	return m
}

// newMessages returns a free message. It makes several if they are short: a sender that is ahead sends thousands.
func newMessages(class int) *Message {
	const most, bytes = 32, 4 << 10
	n := min(max(bytes>>class, 1), most)
	all, payloads := make([]Message, n), make([]byte, n<<class)
	for i := range all {
		all[i].Payload = payloads[i<<class:][: 1<<class : 1<<class]
	}
	for i := range all[1:] {
		messages[class].Put(&all[i+1])
	}
	return &all[0]
}

// Free lets another message use m's memory.
func (m *Message) Free() {
	if cap(m.Payload) <= wire.LongestChunk {
		messages[bits.Len(uint(cap(m.Payload)-1))].Put(m)
	}
}

// A TruncateError is the error of a receive whose buffer is shorter than the message. The message is lost; the
// group goes on.
type TruncateError struct {
	Source    int // world rank
	Got, Room int // bytes of the message, bytes of the buffer
}

func (e *TruncateError) Error() string {
	return fmt.Sprintf("message of %d bytes from rank %d does not fit into %d bytes", e.Got, e.Source, e.Room)
}

// Package matching has the two queues of a communicator: of posted receives that no message has matched, and of unexpected messages,
// that no receive has. A message matches the oldest receive that wants it, and a receive the oldest message that it wants, by source and
// tag (MPI's non-overtaking rule) or, in a collective, by source and sequence number. It is pure: what a match leads to is the matter
// of package endpoint, which owns the queues.
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

// A Pattern is what a receive or a probe wants. Seq is that of a collective, or 0.
type Pattern struct {
	Source int
	Tag    int32
	Seq    uint64
}

// Matches reports whether the message h from source is one that p wants.
func (p *Pattern) Matches(h *wire.Header, source int) bool {
	return p.Seq == h.Seq && (p.Source == source || p.Source == AnySource) && (p.Tag == h.Tag || p.Tag == AnyTag && p.Seq == 0)
}

// A Message has arrived. Of one that is only announced (wire.RTS) the payload is still at the sender.
type Message struct {
	wire.Header
	Source  int
	Payload []byte
}

// messages has those that are free, by the logarithm of how long they may be: as long as what comes without being asked for.
var messages [21]sync.Pool

// NewMessage is a message from source with room for what follows h.
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
		m = &Message{Payload: make([]byte, 1<<class)}
	}
	m.Header, m.Source, m.Payload = h, source, m.Payload[:size]
	return m
}

// Free makes m's memory that of another message.
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

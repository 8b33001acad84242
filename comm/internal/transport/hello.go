package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A Hello is what a rank says of itself when it opens a connection to another one.
type Hello struct {
	World    uint64 // identifies the world; ranks of different worlds refuse each other
	From, To uint32 // ranks
}

// HelloSize is the bytes of a Hello.
const HelloSize = 8 + 4 + 4

// The answers to a Hello.
var (
	ReplyWelcome = []byte("welcome")
	ReplyCrossed = []byte("crossed") // see ErrCrossed
)

// Bytes encodes h.
func (h Hello) Bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, h.World)
	b = binary.LittleEndian.AppendUint32(b, h.From)
	return binary.LittleEndian.AppendUint32(b, h.To)
}

// ParseHello decodes the first [HelloSize] bytes of b, and checks that they are from a peer of rank in a world of that
// many ranks.
func ParseHello(b []byte, world uint64, rank, ranks int) (h Hello, err error) {
	h = Hello{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])}
	switch {
	case h.World != world:
		return h, errors.New("belongs to another world (an earlier round, or another job)")
	case h.To != uint32(rank):
		return h, fmt.Errorf("looks for rank %d, this is rank %d", h.To, rank)
	case uint64(h.From) >= uint64(ranks) || h.From == h.To:
		return h, fmt.Errorf("calls itself rank %d of %d", h.From, ranks)
	}
	return h, nil
}

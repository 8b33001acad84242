package tcp

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	replyWelcome = []byte("welcome")
	replyCrossed = []byte("crossed")
)

// A hello is what the dialler of a connection says: the world, who calls, who is called, and which part of which stream the
// connection is, of how many.
type hello struct {
	world       uint64
	rank, to    uint32
	stream      uint64 // random, the same for all parts
	part, parts uint8
}

const helloSize = 8 + 4 + 4 + 8 + 1 + 1

// hello begins a stream to a rank.
func (t *Transport) hello(to int) hello {
	h := hello{world: t.cfg.World, rank: uint32(t.cfg.Rank), to: uint32(to)}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	h.stream = binary.LittleEndian.Uint64(b[:])
	return h
}

func (h *hello) bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, h.world)
	b = binary.LittleEndian.AppendUint32(b, h.rank)
	b = binary.LittleEndian.AppendUint32(b, h.to)
	b = binary.LittleEndian.AppendUint64(b, h.stream)
	return append(b, h.part, h.parts)
}

func (t *Transport) checkHello(b []byte) (h hello, err error) {
	if len(b) != helloSize {
		return h, fmt.Errorf("hello of %d bytes", len(b))
	}
	number := binary.LittleEndian
	h = hello{number.Uint64(b), number.Uint32(b[8:]), number.Uint32(b[12:]), number.Uint64(b[16:]), b[24], b[25]}
	switch {
	case h.world != t.cfg.World:
		return h, errors.New("belongs to another world (an earlier round, or another job)")
	case h.to != uint32(t.cfg.Rank):
		return h, fmt.Errorf("looks for rank %d, this is rank %d", h.to, t.cfg.Rank)
	case uint64(h.rank) >= uint64(len(t.cfg.Peers)) || h.rank == h.to:
		return h, fmt.Errorf("calls itself rank %d of %d", h.rank, len(t.cfg.Peers))
	case h.parts > MostConnections || h.part >= h.parts:
		return h, fmt.Errorf("calls itself connection %d of %d", h.part, h.parts)
	}
	return h, nil
}

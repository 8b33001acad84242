package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The wire format between a TCPStore and a StoreServer, after the handshake. Integers are big-endian.
//
//	frame    length u32 of what follows, kind u8, id u64, then by kind:
//	set      key, value to the end
//	get      key                    answered once the key exists, with its value
//	wait     key                    answered once the key exists, with nothing
//	add      key, n i64             answered with the sum, i64
//	swap     key, length u32 of old, old, new to the end; answered with what the key holds then
//	delete   key                    answered with one byte: 1 if it existed
//	forget                          ends the get or wait of the same id without an answer
//	done     the answer to the request of the same id
//	failed   text, instead of that answer
//	key      length u16, bytes
const (
	storeSet storeKind = iota + 1
	storeGet
	storeWait
	storeAdd
	storeSwap
	storeDelete
	storeForget
	storeDone
	storeFailed
)

type storeKind byte

const (
	storeHeader   = 4 + 1 + 8 // length, kind, id
	storeMaxFrame = storeHeader + 2 + MaxStoreKey + 4 + 2*MaxStoreValue
)

var errStoreFrame = errors.New("malformed frame")

// A storeRequest is one question; which fields count depends on the kind.
type storeRequest struct {
	kind       storeKind
	id         uint64
	key        string
	n          int64
	old, value []byte
}

// frame returns the request in pieces, so that values need not be copied.
func (r storeRequest) frame() [][]byte {
	head := make([]byte, 4, storeHeader+2+len(r.key)+8)
	head = append(head, byte(r.kind))
	head = binary.BigEndian.AppendUint64(head, r.id)
	if r.kind != storeForget {
		head = binary.BigEndian.AppendUint16(head, uint16(len(r.key)))
		head = append(head, r.key...)
	}
	pieces := [][]byte{head}
	switch r.kind {
	case storeAdd:
		pieces[0] = binary.BigEndian.AppendUint64(head, uint64(r.n))
	case storeSet:
		pieces = append(pieces, r.value)
	case storeSwap:
		pieces[0] = binary.BigEndian.AppendUint32(head, uint32(len(r.old)))
		pieces = append(pieces, r.old, r.value)
	default: // the key is all
	}
	return sealStoreFrame(pieces)
}

// A storeReply is the answer to one request, or the text of its failure.
type storeReply struct {
	kind    storeKind // storeDone or storeFailed
	id      uint64
	payload []byte
}

func (r storeReply) frame() [][]byte {
	head := append(make([]byte, 4, storeHeader), byte(r.kind))
	head = binary.BigEndian.AppendUint64(head, r.id)
	return sealStoreFrame([][]byte{head, r.payload})
}

// sealStoreFrame fills in the length, the first four bytes of the first piece.
func sealStoreFrame(pieces [][]byte) [][]byte {
	binary.BigEndian.PutUint32(pieces[0], uint32(sizeOf(pieces)-4))
	return pieces
}

func sizeOf(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// readStoreFrame returns the next frame without its length. What a frame claims to be long is not believed
// until it has come: the buffer grows with what arrives.
func readStoreFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n < storeHeader-4 || n > storeMaxFrame-4 {
		return nil, fmt.Errorf("%w: %d bytes", errStoreFrame, n)
	}
	const ahead = 64 << 10
	body := make([]byte, 0, min(n, ahead))
	for len(body) < n {
		body = slices.Grow(body, min(n-len(body), max(len(body), ahead)))
		got, err := io.ReadFull(r, body[len(body):min(cap(body), n)])
		body = body[:len(body)+got]
		if err != nil {
			return nil, errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return body, nil
}

// parseStoreRequest reads a frame's body. The request keeps parts of it. Sizes are within a store's limits, and
// nothing is left over.
func parseStoreRequest(body []byte) (storeRequest, error) {
	p := storeParser{rest: body}
	r := storeRequest{kind: storeKind(p.byte()), id: p.uint64()}
	if r.kind != storeForget {
		r.key = string(p.take(int(p.uint16())))
	}
	switch r.kind {
	case storeSet:
		r.value = p.take(len(p.rest))
	case storeAdd:
		r.n = int64(p.uint64())
	case storeSwap:
		r.old = p.take(int(p.uint32()))
		r.value = p.take(len(p.rest))
	case storeGet, storeWait, storeDelete:
	case storeForget:
		return r, p.end()
	default:
		p.bad = true
	}
	if err := p.end(); err != nil {
		return storeRequest{}, err
	}
	if err := checkStoreSizes(r.key, r.old, r.value); err != nil {
		return storeRequest{}, fmt.Errorf("%w: %w", errStoreFrame, err)
	}
	return r, nil
}

func parseStoreReply(body []byte) (storeReply, error) {
	p := storeParser{rest: body}
	r := storeReply{kind: storeKind(p.byte()), id: p.uint64()}
	r.payload = p.take(len(p.rest))
	p.bad = p.bad || r.kind != storeDone && r.kind != storeFailed
	return r, p.end()
}

// A storeParser takes a body apart; what is not there reads as zero and makes end fail.
type storeParser struct {
	rest []byte
	bad  bool
}

func (p *storeParser) take(n int) []byte {
	if n < 0 || n > len(p.rest) { // negative: where an int has 32 bits
		p.bad, n = true, 0
	}
	taken := p.rest[:n:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *storeParser) number(size int) (n uint64) {
	for _, b := range p.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (p *storeParser) byte() byte     { return byte(p.number(1)) }
func (p *storeParser) uint16() uint16 { return uint16(p.number(2)) }
func (p *storeParser) uint32() uint32 { return uint32(p.number(4)) }
func (p *storeParser) uint64() uint64 { return p.number(8) }

func (p *storeParser) end() error {
	if p.bad || len(p.rest) > 0 {
		return errStoreFrame
	}
	return nil
}

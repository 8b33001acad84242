package tcpstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/gorun/gorun/comm/store"
)

// A kind is what a frame is for.
type kind byte

// The wire format between a Client and a Server, after the handshake. Integers are big-endian.
//
//	frame    length u32 of what follows, kind u8, id u64, then by kind:
//	set      key, value to the end
//	get      key                    answered once the key exists, with its value
//	wait     key                    answered once the key exists, with nothing
//	add      key, n i64             answered with the sum, i64
//	swap     key, length u32 of old, old, new to the end; answered with what the key holds afterwards
//	delete   key                    answered with one byte: 1 if it existed
//	cancel                          ends the get or wait of the same id without an answer
//	done     the answer to the request of the same id
//	failed   text, instead of that answer
//	key      length u16, bytes
const (
	setKind kind = iota + 1
	getKind
	waitKind
	addKind
	swapKind
	deleteKind
	cancelKind
	doneKind
	failedKind
)

const (
	headerSize = 4 + 1 + 8 // length, kind, id
	maxFrame   = headerSize + 2 + store.MaxKey + 4 + 2*store.MaxValue
)

var errMalformed = errors.New("malformed frame")

// A request is what a client asks for. Which fields count depends on the kind.
type request struct {
	kind       kind
	id         uint64
	key        string
	n          int64
	old, value []byte
}

// frame returns the request as several buffers, so that values need not be copied.
func (r request) frame() [][]byte {
	head := make([]byte, 4, headerSize+2+len(r.key)+8)
	head = append(head, byte(r.kind))
	head = binary.BigEndian.AppendUint64(head, r.id)
	if r.kind != cancelKind {
		head = binary.BigEndian.AppendUint16(head, uint16(len(r.key)))
		head = append(head, r.key...)
	}
	buffers := [][]byte{head}
	switch r.kind {
	case addKind:
		buffers[0] = binary.BigEndian.AppendUint64(head, uint64(r.n))
	case setKind:
		buffers = append(buffers, r.value)
	case swapKind:
		buffers[0] = binary.BigEndian.AppendUint32(head, uint32(len(r.old)))
		buffers = append(buffers, r.old, r.value)
	default: // nothing follows the key
	}
	return seal(buffers)
}

// A reply is the answer to one request, or the text of its error.
type reply struct {
	kind    kind // doneKind or failedKind
	id      uint64
	payload []byte
}

func (r reply) frame() [][]byte {
	head := append(make([]byte, 4, headerSize), byte(r.kind))
	head = binary.BigEndian.AppendUint64(head, r.id)
	return seal([][]byte{head, r.payload})
}

// seal sets the length, which is the first four bytes of the first buffer.
func seal(buffers [][]byte) [][]byte {
	binary.BigEndian.PutUint32(buffers[0], uint32(sizeOf(buffers)-4))
	return buffers
}

func sizeOf(buffers [][]byte) (n int) {
	for _, b := range buffers {
		n += len(b)
	}
	return n
}

// readFrame returns the next frame without its length. The buffer grows with what arrives, not by the length that a
// frame claims to have.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(length[:]))
	if n < headerSize-4 || n > maxFrame-4 {
		return nil, fmt.Errorf("%w: %d bytes", errMalformed, n)
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

// parseRequest parses the body of a frame. The request keeps slices of the body. Its sizes are within the limits of a
// store, and no bytes are left over.
func parseRequest(body []byte) (request, error) {
	p := parser{rest: body}
	r := request{kind: kind(p.byte()), id: p.uint64()}
	if r.kind != cancelKind {
		r.key = string(p.take(int(p.uint16())))
	}
	switch r.kind {
	case setKind:
		r.value = p.take(len(p.rest))
	case addKind:
		r.n = int64(p.uint64())
	case swapKind:
		r.old = p.take(int(p.uint32()))
		r.value = p.take(len(p.rest))
	case getKind, waitKind, deleteKind:
	case cancelKind:
		return r, p.end()
	default:
		p.bad = true
	}
	if err := p.end(); err != nil {
		return request{}, err
	}
	if err := cmp.Or(store.CheckKey(r.key), store.CheckValues(r.key, r.old, r.value)); err != nil {
		return request{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return r, nil
}

// parseReply parses the body of a frame. The reply keeps slices of the body.
func parseReply(body []byte) (reply, error) {
	p := parser{rest: body}
	r := reply{kind: kind(p.byte()), id: p.uint64()}
	r.payload = p.take(len(p.rest))
	p.bad = p.bad || r.kind != doneKind && r.kind != failedKind
	return r, p.end()
}

// A parser reads the fields of a body. Missing bytes read as zero, and make end return an error.
type parser struct {
	rest []byte
	bad  bool
}

func (p *parser) take(n int) []byte {
	if n < 0 || n > len(p.rest) { // negative: an int may have 32 bits
		p.bad, n = true, 0
	}
	taken := p.rest[:n:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *parser) number(size int) (n uint64) {
	for _, b := range p.take(size) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (p *parser) byte() byte     { return byte(p.number(1)) }
func (p *parser) uint16() uint16 { return uint16(p.number(2)) }
func (p *parser) uint32() uint32 { return uint32(p.number(4)) }
func (p *parser) uint64() uint64 { return p.number(8) }

func (p *parser) end() error {
	if p.bad || len(p.rest) > 0 {
		return errMalformed
	}
	return nil
}

const (
	// queueFull is how many bytes may be queued for a connection before its other end counts as too slow.
	queueFull = 256 << 20
	// queueHigh is how many bytes may be queued for a connection while more requests are read from it.
	queueHigh = 1 << 20
	// bufferCost is what a buffer of a frame counts in addition to its bytes, so that many small ones are bounded as well.
	bufferCost = 64
)

// A sendQueue is the bounded queue of the frames that one goroutine writes to a connection. Queueing a frame never
// waits for the network.
type sendQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	buffers net.Buffers
	size    int // of what is queued or being written
	closed  bool
}

func newSendQueue() *sendQueue {
	q := &sendQueue{}
	q.changed.L = &q.mu
	return q
}

// push queues a frame and reports whether there was room.
func (q *sendQueue) push(frame [][]byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.size > queueFull {
		return false
	}
	q.buffers = append(q.buffers, frame...)
	q.size += sizeOf(frame) + bufferCost*len(frame)
	q.changed.Broadcast()
	return true
}

// writeTo writes what is queued to w until the queue is closed and empty, or writing fails.
func (q *sendQueue) writeTo(w io.Writer) error {
	for {
		q.mu.Lock()
		for len(q.buffers) == 0 && !q.closed {
			q.changed.Wait()
		}
		batch, size := q.buffers, q.size
		q.buffers = nil
		q.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if _, err := batch.WriteTo(w); err != nil {
			return err
		}
		q.mu.Lock()
		q.size -= size
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

// waitLow waits until less than queueHigh is queued, or the queue is closed.
func (q *sendQueue) waitLow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.size > queueHigh && !q.closed {
		q.changed.Wait()
	}
}

// close refuses further frames. What is queued is still written.
func (q *sendQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}

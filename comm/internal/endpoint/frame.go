package endpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
)

// kind says what a frame is. Eager and data frames are followed by a payload of header.size bytes, abort,
// answer and cause frames by a JSON document of that size; the others are bare headers.
type kind uint8

const (
	kindEager   kind = iota + 1 // a whole small message
	kindRTS                     // ready to send: a large message of size bytes waits at the sender
	kindCTS                     // clear to send: the receiver has posted a buffer for message id
	kindDecline                 // the receiver does not want the bytes of message id; its sender is done
	kindData                    // the bytes of message id
	kindCredit                  // size bytes of eager budget given back
	kindAbort                   // the group has failed; the payload says why
	kindGoodbye                 // the peer leaves in good order; nothing follows
	kindLeave                   // the peer has closed the group
	kindAsk                     // what are you in, and what did you call as collective seq of the group?
	kindAnswer                  // the payload says
	kindCause                   // an operation of the peer's has failed through no fault of its own; the payload says why
)

// failureLimit and reportLimit bound the documents of failures and of answers, in bytes.
const (
	failureLimit = 8 << 10
	reportLimit  = 16 << 10
)

// headerSize is the length of every frame's header in bytes: a cache line.
const headerSize = 64

// header is the envelope of a frame. Numbers travel in little-endian order.
type header struct {
	kind  kind
	tag   int32  // point to point: the caller's tag; collective: 0; see hasHistory
	group uint64 // which lane
	seq   uint64 // collective, leave: its number in the group, from 1; point to point: 0
	size  uint64 // bytes of the message (eager, RTS, data), of the document (abort, answer, cause) or of credit
	id    uint64 // RTS, CTS, decline, data: the sender's number of the message
	whole uint64 // collective: bytes of the message of which this is a piece
	call  call.Call

	before uint32 // instead of tag: what travels of the history before call
}

// called is the collective that the sender has begun.
func (h *header) called() call.Fingerprint {
	return call.Fingerprint{Seq: h.seq, Call: h.call, Before: h.before}
}

// hasHistory says whether there is one in the frame, instead of a tag.
func (h *header) hasHistory() bool {
	return h.seq > 0 && (h.kind == kindEager || h.kind == kindRTS || h.kind == kindLeave)
}

// longest is how long a message like h may be that nobody has asked for.
func (h *header) longest() uint64 {
	if h.seq > 0 {
		return LongestPiece
	}
	return EagerLimit
}

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), h.call.Op, h.call.Type, h.call.Reduce)
	tag := uint32(h.tag)
	if h.hasHistory() {
		tag = h.before
	}
	b = binary.LittleEndian.AppendUint32(b, tag)
	b = binary.LittleEndian.AppendUint64(b, h.group)
	b = binary.LittleEndian.AppendUint64(b, h.seq)
	b = binary.LittleEndian.AppendUint64(b, h.size)
	b = binary.LittleEndian.AppendUint64(b, h.id)
	b = binary.LittleEndian.AppendUint64(b, h.whole)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.call.Root))
	b = binary.LittleEndian.AppendUint64(b, h.call.Count)
	return binary.LittleEndian.AppendUint32(b, h.call.Detail)
}

// parseHeader decodes b, which is headerSize long, and refuses what no endpoint sends.
func parseHeader(b []byte) (header, error) {
	h := header{
		kind:  kind(b[0]),
		tag:   int32(binary.LittleEndian.Uint32(b[4:])),
		group: binary.LittleEndian.Uint64(b[8:]),
		seq:   binary.LittleEndian.Uint64(b[16:]),
		size:  binary.LittleEndian.Uint64(b[24:]),
		id:    binary.LittleEndian.Uint64(b[32:]),
		whole: binary.LittleEndian.Uint64(b[40:]),
		call: call.Call{
			Op: b[1], Type: b[2], Reduce: b[3],
			Root:  int32(binary.LittleEndian.Uint32(b[48:])),
			Count: binary.LittleEndian.Uint64(b[52:]), Detail: binary.LittleEndian.Uint32(b[60:]),
		},
	}
	if h.hasHistory() {
		h.before, h.tag = uint32(h.tag), 0
	}
	switch {
	case h.kind < kindEager || h.kind > kindCause:
		return h, fmt.Errorf("frame of unknown kind %d", h.kind)
	case h.kind == kindEager && h.size > h.longest():
		return h, fmt.Errorf("eager frame of %d bytes, limit %d", h.size, h.longest())
	case (h.kind == kindAbort || h.kind == kindCause) && h.size > failureLimit:
		return h, fmt.Errorf("frame of a failure, of %d bytes, limit %d", h.size, failureLimit)
	case h.kind == kindAnswer && h.size > reportLimit:
		return h, fmt.Errorf("answer frame of %d bytes, limit %d", h.size, reportLimit)
	case max(h.size, h.whole) > maxMessage:
		return h, fmt.Errorf("message of %d bytes, limit %d", max(h.size, h.whole), uint64(maxMessage))
	}
	return h, nil
}

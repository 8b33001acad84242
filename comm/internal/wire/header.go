// Package wire is the protocol of two endpoints on a stream. A frame has a header of 64 bytes and perhaps a payload. An Outbox turns frames
// into bytes. SendCredit and ReceiveCredit are flow control: they count what a rank sends before its peer expects it. The package is pure:
// it moves no bytes and matches no messages. Package endpoint owns its state.
package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/gorun/gorun/comm/internal/call"
)

// A Kind says what a frame is. Eager and Data frames are followed by a payload of Header.Size bytes, Abort, Answer and Cause frames by
// a document of that size; the others are bare headers.
type Kind uint8

// The kinds of frames.
const (
	Eager   Kind = iota + 1 // a whole small message
	RTS                     // ready to send: a large message of Size bytes waits at the sender
	CTS                     // clear to send: the receiver has posted a buffer for message ID
	Decline                 // the receiver does not want the bytes of message ID; its sender is done
	Data                    // bytes of message ID, which follow those of its Data before
	Credit                  // Size bytes of eager credit go back to the peer
	Abort                   // the group has failed; the payload says why
	Goodbye                 // the peer leaves in good order; nothing follows
	Leave                   // the peer has closed the group
	Ask                     // what are you in, and what did you call as collective Seq of the group?
	Answer                  // the payload says
	Cause                   // an operation of the peer's has failed through no fault of its own; the payload says why
)

const (
	// EagerLimit is the size of the longest eager message, in bytes.
	EagerLimit = 256 << 10
	// LongestChunk is the same for a chunk of a collective's message. Its receiver is ready, or will be soon. No frame is longer.
	LongestChunk = 1 << 20
	// MaxMessage bounds one message, in bytes: far above any buffer, so that sums of sizes cannot overflow.
	MaxMessage = 1 << 46
	// FailureLimit bounds the document of a failure, in bytes.
	FailureLimit = 8 << 10
	// ReportLimit bounds the document of an answer, in bytes.
	ReportLimit = 16 << 10
	// HeaderSize is the length of every frame's header in bytes: a cache line.
	HeaderSize = 64
)

// A Header is the envelope of a frame. Numbers travel in little-endian order.
type Header struct {
	Kind    Kind
	Tag     int32  // point to point: the caller's tag; collective: 0; see hasHistory
	Context uint64 // of which group
	// Collective, leave: which. Point to point: Seq is 0.
	call.Fingerprint        // Before travels instead of Tag
	Size             uint64 // bytes of the message (eager, RTS, data), of the document (abort, answer, cause) or of credit
	ID               uint64 // RTS, CTS, decline, data: the sender's number of the message
	Whole            uint64 // collective: bytes of the message of which this is a chunk
}

// hasHistory reports whether the frame has Before instead of a tag.
func (h *Header) hasHistory() bool {
	return h.Seq > 0 && (h.Kind == Eager || h.Kind == RTS || h.Kind == Leave)
}

// EagerLimit is the size of the longest eager message like h.
func (h *Header) EagerLimit() uint64 {
	if h.Seq > 0 {
		return LongestChunk
	}
	return EagerLimit
}

// IsMessage reports whether the payload of a frame is a message.
func (h *Header) IsMessage() bool { return h.Kind == Eager || h.Kind == Data }

// Append appends h to b, encoded.
func (h Header) Append(b []byte) []byte {
	b = append(b, byte(h.Kind), byte(h.Call.Kind), h.Call.Type, h.Call.Reduce)
	tag := uint32(h.Tag)
	if h.hasHistory() {
		tag = h.Before
	}
	b = binary.LittleEndian.AppendUint32(b, tag)
	b = binary.LittleEndian.AppendUint64(b, h.Context)
	b = binary.LittleEndian.AppendUint64(b, h.Seq)
	b = binary.LittleEndian.AppendUint64(b, h.Size)
	b = binary.LittleEndian.AppendUint64(b, h.ID)
	b = binary.LittleEndian.AppendUint64(b, h.Whole)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.Call.Root))
	b = binary.LittleEndian.AppendUint64(b, h.Call.Count)
	return binary.LittleEndian.AppendUint32(b, h.Call.Detail)
}

// Parse decodes b, which is HeaderSize long, and refuses what no endpoint sends.
func Parse(b []byte) (Header, error) {
	h := Header{
		Kind:    Kind(b[0]),
		Tag:     int32(binary.LittleEndian.Uint32(b[4:])),
		Context: binary.LittleEndian.Uint64(b[8:]),
		Size:    binary.LittleEndian.Uint64(b[24:]),
		ID:      binary.LittleEndian.Uint64(b[32:]),
		Whole:   binary.LittleEndian.Uint64(b[40:]),
	}
	h.Seq = binary.LittleEndian.Uint64(b[16:])
	h.Call = call.Call{
		Kind: call.Kind(b[1]), Type: b[2], Reduce: b[3],
		Root:  int32(binary.LittleEndian.Uint32(b[48:])),
		Count: binary.LittleEndian.Uint64(b[52:]), Detail: binary.LittleEndian.Uint32(b[60:]),
	}
	if h.hasHistory() {
		h.Before, h.Tag = uint32(h.Tag), 0
	}
	switch {
	case h.Kind < Eager || h.Kind > Cause:
		return h, fmt.Errorf("frame of unknown kind %d", h.Kind)
	case h.Kind == Eager && h.Size > h.EagerLimit():
		return h, fmt.Errorf("eager frame of %d bytes, limit %d", h.Size, h.EagerLimit())
	case h.Kind == Data && h.Size > LongestChunk:
		return h, fmt.Errorf("data frame of %d bytes, limit %d", h.Size, LongestChunk)
	case (h.Kind == Abort || h.Kind == Cause) && h.Size > FailureLimit:
		return h, fmt.Errorf("frame of a failure, of %d bytes, limit %d", h.Size, FailureLimit)
	case h.Kind == Answer && h.Size > ReportLimit:
		return h, fmt.Errorf("answer frame of %d bytes, limit %d", h.Size, ReportLimit)
	case max(h.Size, h.Whole) > MaxMessage:
		return h, fmt.Errorf("message of %d bytes, limit %d", max(h.Size, h.Whole), uint64(MaxMessage))
	}
	return h, nil
}

// MatchEager returns the length of the eager message, point to point with that tag and element type in that context, that b begins with,
// or -1 if it is something else. It is Parse for who knows what to expect.
func MatchEager(b []byte, context uint64, tag int, typ uint8) int {
	if Kind(b[0]) != Eager || b[2] != typ || binary.LittleEndian.Uint32(b[4:]) != uint32(tag) ||
		binary.LittleEndian.Uint64(b[8:]) != context || binary.LittleEndian.Uint64(b[16:]) != 0 {
		return -1
	}
	return int(min(binary.LittleEndian.Uint64(b[24:]), MaxMessage))
}

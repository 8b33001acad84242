// Package frame encodes what gorun launch and the gorun proxy on a host send each other, over the stdin and stdout of a remote shell, and
// what the proxy gets from gorun, its child. It is pure: bytes in, bytes out.
//
// The proxy begins with a Hello, in one line, because a login shell may print something before it. All else is frames: a kind (1 byte),
// a length (4 bytes, big-endian) and so many bytes. No length is believed before it has been compared with the limit of its kind.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind says what a frame contains.
type Kind byte

// The kinds. Streams (Stdin, Stdout and Stderr) have a window: at most Window bytes of each may be on their way or wait at the receiver,
// which returns what it has passed on with Taken. So a stream that nobody reads never holds up a signal or a heartbeat.
const (
	Start     Kind = iota + 1 // to the proxy: a Job, in JSON. It comes first, and once
	Stdin                     // to the proxy: what the job reads. Empty: the end
	Signal                    // to the proxy: the number of a signal for the job (1 byte)
	Kill                      // to the proxy: end the job at once. Empty
	Stdout                    // from the proxy: what the job has written
	Stderr                    // the same
	Ended                     // from the proxy, which has it from gorun: an Outcome, in JSON. It comes last
	Taken                     // both ways: the kind of a stream (1 byte), and how many more bytes of it were passed on (4 bytes)
	Heartbeat                 // both ways: the sender lives. Empty
	Scaled                    // from the proxy, which has it from gorun: how many nodes the job needs from now on (4 bytes)
)

// Window is how many bytes of a stream may be sent before the receiver has returned any.
const Window = 256 << 10

// MaxData is how many bytes of a stream one frame may contain.
const MaxData = 32 << 10

// MaxJob limits a Job. Linux limits the arguments and variables of a program to a quarter of its stack: 2 MiB, as a rule.
const MaxJob = 8 << 20

// MaxOutcome limits an Outcome.
const MaxOutcome = 1 << 20

// MaxNodes limits how many nodes a job may need: no job has so many.
const MaxNodes = 1 << 16

const header = 5

// limits are the lengths that the kinds allow, from and to.
var limits = [...]struct{ least, most int }{
	Start: {2, MaxJob}, Stdin: {0, MaxData}, Signal: {1, 1}, Kill: {}, Stdout: {1, MaxData}, Stderr: {1, MaxData},
	Ended: {2, MaxOutcome}, Taken: {5, 5}, Heartbeat: {}, Scaled: {4, 4},
}

// Append appends a frame to b. The caller keeps to the limits of the kind.
func Append(b []byte, kind Kind, payload []byte) []byte {
	b = append(b, byte(kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// AppendTaken appends a frame of kind Taken: n bytes of a stream were passed on.
func AppendTaken(b []byte, stream Kind, n int) []byte {
	return Append(b, Taken, binary.BigEndian.AppendUint32([]byte{byte(stream)}, uint32(n)))
}

// ParseTaken returns what a frame of kind Taken says.
func ParseTaken(payload []byte) (stream Kind, n int, err error) {
	stream, n = Kind(payload[0]), int(binary.BigEndian.Uint32(payload[1:]))
	if stream != Stdin && stream != Stdout && stream != Stderr || n > Window {
		err = fmt.Errorf("%d bytes of stream %d: want at most %d of stdin, stdout or stderr", n, stream, Window)
	}
	return stream, n, err
}

// AppendScaled appends a frame of kind Scaled: the job needs so many nodes.
func AppendScaled(b []byte, least int) []byte {
	return Append(b, Scaled, binary.BigEndian.AppendUint32(nil, uint32(least)))
}

// ParseScaled returns what a frame of kind Scaled says.
func ParseScaled(payload []byte) (least int, err error) {
	n := binary.BigEndian.Uint32(payload)
	if n < 1 || n > MaxNodes {
		return 0, fmt.Errorf("a job that needs %d nodes: want 1 to %d", n, MaxNodes)
	}
	return int(n), nil
}

// piece is how much memory is taken at one time for a long payload: no more than has come.
const piece = 64 << 10

// Read reads one frame. It returns io.EOF if r ends before one, and io.ErrUnexpectedEOF if r ends in one. The payload is the caller's.
func Read(r io.Reader) (kind Kind, payload []byte, err error) {
	var h [header]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	kind = Kind(h[0])
	length := int64(binary.BigEndian.Uint32(h[1:]))
	if kind == 0 || int(kind) >= len(limits) {
		return 0, nil, fmt.Errorf("a frame of kind %d, which does not exist", kind)
	}
	if limit := limits[kind]; length < int64(limit.least) || length > int64(limit.most) {
		return 0, nil, fmt.Errorf("a frame of kind %d with %d bytes: want %d to %d", kind, length, limit.least, limit.most)
	}
	for rest := int(length); rest > 0; {
		n := min(rest, piece)
		begin := len(payload)
		payload = slices.Grow(payload, n)[:begin+n]
		if _, err := io.ReadFull(r, payload[begin:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, nil, err
		}
		rest -= n
	}
	return kind, payload, nil
}

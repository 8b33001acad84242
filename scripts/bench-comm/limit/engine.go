package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/scripts/bench-comm/pattern"
)

// An engine moves bytes. peers/limit.c does the same.
type engine struct {
	*mesh
	memory  []byte
	scratch []byte // for what is to be added
	parked  bool   // the thread sleeps until a socket is ready, instead of yielding
	polled  []unix.PollFd
	active  []transfer
	inboxes []inbox   // by rank
	values  [2][]byte // of which the memory is rewritten in turn
	stamp   int
}

// An inbox has what was read from a socket before it was wanted: of short messages, one call may return several.
type inbox struct {
	unread []byte
	buffer [64 << 10]byte
}

// brief is up to which length a message is read together with what follows.
const brief = 16 << 10

// A transfer is a move that is under way.
type transfer struct {
	pattern.Move
	done  int                   // bytes
	torn  [pattern.Element]byte // the beginning of an element of which the rest is still to come
	spare int                   // bytes in torn
}

func newEngine(m *mesh) *engine {
	e := &engine{mesh: m, inboxes: make([]inbox, len(m.peers)), scratch: make([]byte, 256<<10), values: [2][]byte{make([]byte, 4096), make([]byte, 4096)}}
	ones := floats(e.values[1])
	for i := range ones {
		ones[i] = 1
	}
	return e
}

// perform carries out a way.
func (e *engine) perform(w pattern.Way) error {
	for _, s := range w.Steps {
		if err := e.step(s); err != nil {
			return err
		}
	}
	return nil
}

// step moves all bytes of a step.
func (e *engine) step(s pattern.Step) error {
	e.active = e.active[:0]
	for _, m := range s {
		switch m.Kind {
		case pattern.Copy:
			copy(e.memory[m.At:m.At+m.Length], e.memory[m.From:])
		case pattern.Sum:
			add(e.memory[m.At:m.At+m.Length], e.memory[m.From:])
		default:
			e.active = append(e.active, transfer{Move: m})
		}
	}
	for {
		left, moved := 0, false
		for i := range e.active {
			t := &e.active[i]
			if t.done == t.Length {
				continue
			}
			n, err := e.move(t)
			if err != nil {
				return fmt.Errorf("rank %d, rank %d: %w", e.rank, t.Peer, err)
			}
			moved = moved || n > 0
			if t.done < t.Length {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		if !moved {
			if err := e.wait(); err != nil {
				return err
			}
		}
	}
}

// move moves what the socket takes or has: n bytes, 0 if that is nothing.
func (e *engine) move(t *transfer) (n int, err error) {
	rest := e.memory[t.At+t.done : t.At+t.Length]
	switch t.Kind {
	case pattern.Send:
		n, err = unix.Write(e.peers[t.Peer], rest)
	case pattern.Recv:
		n, err = e.read(t.Peer, rest)
	default:
		n, err = e.read(t.Peer, e.room(t))
	}
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	}
	t.done += n
	if t.Kind == pattern.Add {
		e.fold(t, n)
	}
	return n, nil
}

// read reads from a socket, and reads ahead if the message is brief.
func (e *engine) read(peer int, to []byte) (int, error) {
	in := &e.inboxes[peer]
	if len(in.unread) == 0 {
		if len(to) > brief {
			return unix.Read(e.peers[peer], to)
		}
		n, err := unix.Read(e.peers[peer], in.buffer[:])
		if n <= 0 {
			return n, err
		}
		in.unread = in.buffer[:n]
	}
	n := copy(to, in.unread)
	in.unread = in.unread[n:]
	return n, nil
}

// room is where the next bytes of t go before they are added.
func (e *engine) room(t *transfer) []byte {
	copy(e.scratch, t.torn[:t.spare])
	return e.scratch[t.spare:min(len(e.scratch), t.spare+t.Length-t.done)]
}

// fold adds the whole elements among the n bytes that have come.
func (e *engine) fold(t *transfer, n int) {
	have := t.spare + n
	whole := have - have%pattern.Element
	at := t.At + t.done - have
	add(e.memory[at:at+whole], e.scratch)
	t.spare = copy(t.torn[:], e.scratch[whole:have])
}

// add adds float32 values.
func add(to, from []byte) {
	if len(to) == 0 {
		return
	}
	a, b := floats(to), floats(from[:len(to)])
	for i := range a {
		a[i] += b[i]
	}
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/pattern.Element)
}

// wait waits until a transfer may go on.
func (e *engine) wait() error {
	if !e.parked {
		yield()
		return nil
	}
	e.polled = e.polled[:0]
	for _, t := range e.active {
		if t.done == t.Length {
			continue
		}
		events := int16(unix.POLLIN)
		if t.Kind == pattern.Send {
			events = unix.POLLOUT
		}
		e.polled = append(e.polled, unix.PollFd{Fd: int32(e.peers[t.Peer]), Events: events})
	}
	_, err := unix.Poll(e.polled, -1)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}

// slowest returns the largest value of all ranks. Nobody returns before everybody has called it.
func (e *engine) slowest(value float64) (float64, error) {
	memory := e.memory
	defer func() { e.memory = memory }()
	e.memory = make([]byte, 16)
	for d := 1; d < len(e.peers); d *= 2 {
		binary.NativeEndian.PutUint64(e.memory, math.Float64bits(value))
		to, from := (e.rank+d)%len(e.peers), (e.rank-d+len(e.peers))%len(e.peers)
		if err := e.step(pattern.Step{{Kind: pattern.Send, Peer: to, Length: 8}, {Kind: pattern.Recv, Peer: from, At: 8, Length: 8}}); err != nil {
			return 0, err
		}
		value = max(value, math.Float64frombits(binary.NativeEndian.Uint64(e.memory[8:])))
	}
	return value, nil
}

//go:build schedule && linux

package shm

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/stream"
	"github.com/gorun/gorun/comm/internal/testing/schedule"
)

// ringInSchedules is the bytes of a ring: enough for a few records.
const ringInSchedules = 512

// streams lets two threads write to each other.
func (w *world) streams() []*schedule.Thread {
	w.streaming = true
	var ends []*schedule.Thread
	for k := range 2 {
		s := stream.Simulated(w.arena, k, ringInSchedules)
		d := &dialogue{w: w, s: s, rng: rand.New(rand.NewPCG(w.rng.Uint64(), uint64(k)))}
		d.left, d.expected = w.rng.IntN(1<<w.rng.IntN(13)), -1
		ends = append(ends, w.m.Go(fmt.Sprintf("end %d", k), func() {
			if err := d.run(); err != nil {
				w.m.Fail(fmt.Errorf("end %d: %w", k, err))
			}
		}))
		w.dialogues[k] = d
	}
	for k, d := range w.dialogues {
		d.expected = w.dialogues[1-k].left
		d.peer = func() bool { return ends[1-k].Dead() }
	}
	w.m.Go("news", func() {
		done := func(t *schedule.Thread) bool { return t.Dead() || t.Ended() }
		w.m.Block(func() bool { return ends[0].Dead() || ends[1].Dead() || done(ends[0]) && done(ends[1]) })
		for k, t := range ends {
			if t.Dead() {
				w.m.Close(stream.SimulatedFD(1 - k))
			}
		}
	})
	return ends
}

// A dialogue is one end's part: it writes numbers in turn, and reads the other's.
type dialogue struct {
	w              *world
	s              *stream.Stream
	rng            *rand.Rand
	left, expected int // bytes to write, and to read
	wrote, read    int
	peer           func() bool // whether it is dead
}

func (d *dialogue) run() error {
	for d.left > 0 || d.expected > 0 {
		wrote, err := d.write()
		read, err2 := 0, error(nil)
		if err == nil {
			read, err2 = d.take()
		}
		if err = errors.Join(err, err2); err != nil {
			if d.peer() && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE)) {
				return nil
			}
			return err
		}
		if wrote+read == 0 && d.s.Arm(d.left > 0) == unix.POLLIN {
			d.w.m.Poll(d.s.Descriptor())
		}
	}
	return nil
}

// write writes a message, if there is room.
func (d *dialogue) write() (int, error) {
	n := min(d.left, 1+d.rng.IntN(1<<d.rng.IntN(9)))
	if n == 0 {
		return 0, nil
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.wrote + i)
	}
	cut := d.rng.IntN(n + 1)
	var err error
	if n <= stream.LongestRecord && d.rng.IntN(2) == 0 {
		if !d.s.Put(b[:cut], b[cut:]) {
			n = 0
		}
	} else {
		n = 0
	}
	if n == 0 {
		n, err = d.s.TryWrite([][]byte{b[:cut], b[cut:]})
	}
	d.wrote += n
	d.left -= n
	return n, err
}

// take reads what is there.
func (d *dialogue) take() (int, error) {
	if d.expected == 0 {
		return 0, nil
	}
	b := make([]byte, 1+d.rng.IntN(400))
	var n int
	var err error
	if d.rng.IntN(2) == 0 {
		if there := d.s.Peek(1); there != nil {
			n = copy(b, visible(there))
			d.s.Skip(n)
		}
	}
	if n == 0 {
		n, err = d.s.TryRead(b)
	}
	for i, v := range b[:n] {
		if v != byte(d.read+i) {
			return n, fmt.Errorf("byte %d is %d", d.read+i, v)
		}
	}
	d.read += n
	d.expected -= n
	return n, err
}

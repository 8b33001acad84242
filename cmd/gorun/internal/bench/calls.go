package bench

import (
	"context"
	"errors"

	"github.com/gorun/gorun/comm"
)

// A call is an operation on certain buffers, which can be repeated.
type call struct {
	do func() error

	clear   func()      // fills all buffers that it uses with zeros
	rewrite func(i int) // rewrites what this rank gives
	prepare func()      // gets ready for a checked call
	wrong   func() int  // counts the elements that such a call has left wrong
}

// typed makes the calls of one experiment, for elements of type T.
type typed[T comm.Element] struct {
	ctx  context.Context
	g    *comm.Group
	e    experiment
	a, b []T // room for the largest size
	of   func(int) T
	fill [2][]T // what buffers are rewritten with, in turns

	given  []T // number(rank, i), as T, for a period
	result []T // reduced(i)
}

// callerOf returns the constructor of callers whose elements of makes from ints.
func callerOf[T comm.Element](of func(int) T) newCaller {
	return func(ctx context.Context, g *comm.Group, e experiment, count int) (caller, func() error, error) {
		t := &typed[T]{ctx: ctx, g: g, e: e, of: of}
		var err error
		if t.a, err = t.alloc(count); err != nil {
			return nil, nil, err
		}
		if e.out {
			if t.b, err = t.alloc(count); err != nil {
				return nil, nil, errors.Join(err, t.free())
			}
		}
		for n := range t.fill {
			t.fill[n] = repeat(of(n), fillBytes/int(e.typ.size))
		}
		t.given = t.numbers(g.Rank())
		for i := range period {
			t.result = append(t.result, of(reduced(e.op, g.Size(), i)))
		}
		return t.call, t.free, nil
	}
}

// alloc allocates all buffers.
func (t *typed[T]) alloc(n int) ([]T, error) {
	if t.e.shared {
		return comm.Alloc[T](t.g, n)
	}
	return make([]T, n), nil
}

func (t *typed[T]) free() error {
	if t.e.shared {
		return errors.Join(comm.Free(t.g, t.a), comm.Free(t.g, t.b))
	}
	return nil
}

// fillBytes fit into the first-level cache while a buffer is filled with them.
const fillBytes = 4096

func repeat[T any](v T, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// rewrite fills buf.
func (t *typed[T]) rewrite(buf []T, with int) {
	for len(buf) > 0 {
		buf = buf[copy(buf, t.fill[with]):]
	}
}

// numbers returns a rank's input.
func (t *typed[T]) numbers(rank int) (list []T) {
	for i := range period {
		list = append(list, t.of(number(t.e.op, t.g.Size(), rank, i)))
	}
	return list
}

// A span is a buffer with its expected contents: buf[i] is element first+i of the numbers, which repeat.
type span[T comm.Element] struct {
	buf     []T
	numbers []T
	first   int
}

func (s span[T]) fill() {
	for i, k := 0, s.first%period; i < len(s.buf); i++ {
		s.buf[i] = s.numbers[k]
		if k++; k == period {
			k = 0
		}
	}
}

func (s span[T]) wrong() (n int) {
	for i, k := 0, s.first%period; i < len(s.buf); i++ {
		if s.buf[i] != s.numbers[k] {
			n++
		}
		if k++; k == period {
			k = 0
		}
	}
	return n
}

// newCall returns a call with one input buffer of this rank, and with the contents that it should leave in others.
func (t *typed[T]) newCall(given []T, wants []span[T], do func() error) *call {
	return &call{
		do: do,
		clear: func() {
			t.rewrite(given, 0)
			for _, s := range wants {
				t.rewrite(s.buf, 0)
			}
		},
		rewrite: func(i int) { t.rewrite(given, i%len(t.fill)) },
		prepare: func() {
			bad := repeat(t.of(poison), period)
			for _, s := range wants {
				span[T]{buf: s.buf, numbers: bad}.fill()
			}
			span[T]{buf: given, numbers: t.given}.fill()
		},
		wrong: func() (n int) {
			for _, s := range wants {
				n += s.wrong()
			}
			return n
		},
	}
}

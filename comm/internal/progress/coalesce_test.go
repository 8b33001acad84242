package progress

import (
	"slices"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/internal/transport"
)

// limit is the CoalesceLimit of a coalescer.
const limit = 100

// A coalescer notes whether short writes wait.
type coalescer struct {
	transport.Stream
	on           bool
	acknowledged int
}

func (c *coalescer) Coalesce(on bool)   { c.on = on }
func (c *coalescer) CoalesceLimit() int { return limit }
func (c *coalescer) Acknowledge()       { c.acknowledged++ }
func (c *coalescer) Close() error       { return nil }

func TestCoalesce(t *testing.T) {
	row := slices.Repeat([]bool{true}, coalesceFrom)
	for name, c := range map[string]struct {
		short []bool // of each write, whether it is a short message
		end   func(e *Engine)
		want  bool
	}{
		"few":                      {short: row[1:]},
		"many":                     {short: row, want: true},
		"many, before a wait":      {short: row, end: (*Engine).BeginWait},
		"others":                   {short: make([]bool, 2*coalesceFrom)},
		"another at the end":       {short: append(slices.Clone(row), false)},
		"another among few":        {short: append(append(slices.Clone(row[1:]), false), row[1:]...)},
		"many, after another":      {short: append(append(slices.Clone(row), false), row...), want: true},
		"many to a peer that left": {short: row, end: func(e *Engine) { e.Remove(e.Conn(1)); e.BeginWait() }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			stream, e := &coalescer{}, New(new(sync.Mutex), 2, Options{})
			e.Add(1, stream, nil)
			for _, short := range c.short {
				bytes := limit
				if !short {
					bytes++
				}
				e.CountWrite(e.Conn(1), bytes, true)
			}
			if c.end != nil {
				c.end(e)
			}
			if stream.on != c.want {
				t.Errorf("short writes wait: %v", stream.on)
			}
		})
	}
}

// Who parks acknowledges what it has read from the peer that it waits for.
func TestWhoParksAcknowledges(t *testing.T) {
	e, streams := New(new(sync.Mutex), 3, Options{}), make([]*coalescer, 3)
	for rank := 1; rank < 3; rank++ {
		streams[rank] = &coalescer{}
		e.Add(rank, streams[rank], nil)
	}
	var r Request
	e.Unpark(e.Park(&r, e.Conn(1)))
	e.Unpark(e.Park(&r, nil))
	if streams[1].acknowledged != 2 || streams[2].acknowledged != 1 {
		t.Errorf("acknowledged %d and %d times, want 2 and 1", streams[1].acknowledged, streams[2].acknowledged)
	}
}

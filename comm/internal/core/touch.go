package core

import (
	"fmt"
	"runtime/debug"

	"github.com/gorun/gorun/comm/internal/call"
)

// A toucher checks that buffers of a call are memory of this process: their first and last bytes can be read, and
// written where the call will write.
type toucher struct{ name string } // of the buffer

// check calls look, which reads and writes buffers. If one is no memory, it returns an error that names the buffer.
func (t *toucher) check(look func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%s begins or ends where this process has no memory that the call may use", t.name)
		}
	}()
	look()
	return nil
}

// read checks a buffer that the call will read.
func (t *toucher) read(name string, buf []byte) {
	if t.name = name; len(buf) > 0 {
		load(&buf[0])
		load(&buf[len(buf)-1])
	}
}

// write checks a buffer that the call will write to.
func (t *toucher) write(name string, buf []byte) {
	if t.name = name; len(buf) > 0 {
		first, last := &buf[0], &buf[len(buf)-1]
		*first = load(first)
		*last = load(last)
	}
}

// load reads a byte, also if nobody needs it.
//
//go:noinline
func load(b *byte) byte { return *b }

// touch checks the buffers of a collective on g.
func (a *Args) touch(g *Group, b *Blocks) error {
	var t toucher
	return t.check(func() { a.touchWith(&t, g, b) })
}

func (a *Args) touchWith(t *toucher, g *Group, b *Blocks) {
	root := g.rank == a.Root
	switch {
	case a.Kind == call.KindBroadcast && root, a.Kind == call.KindReduce && !root, a.Kind == call.KindExScan && g.rank == 0:
		t.read("buf", a.Out)
	case a.Kind != call.KindGather || root:
		t.write("out", a.Out)
	}
	if a.Kind != call.KindScatter || root {
		t.read("in", a.In)
	}
	if b == nil {
		return
	}
	if a.Kind != call.KindGatherV || root {
		for i := range b.Outs.Len() {
			t.write("out", b.Outs.Bytes(i, a.Type.Size()))
		}
	}
	if a.Kind != call.KindScatterV || root {
		for i := range b.Ins.Len() {
			t.read("in", b.Ins.Bytes(i, a.Type.Size()))
		}
	}
}

// touch checks the buffer of a message.
func (m *PointToPoint) touch() error {
	var t toucher
	return t.check(func() {
		if m.Kind == call.KindSend {
			t.read("buf", m.buf)
		} else {
			t.write("buf", m.buf)
		}
	})
}

package core

import (
	"fmt"
	"runtime/debug"

	"github.com/gorun/gorun/comm/internal/call"
)

// A toucher checks that buffers of a call are memory of this process: their first and last bytes can be read, and
// written where the call will write.
type toucher struct{ name string } // of the buffer

// begin makes accesses to what is no memory panic. It returns what they did before.
func (t *toucher) begin() (panicked bool) { return debug.SetPanicOnFault(true) }

// end ends what begin has begun. It is deferred. If an access has panicked, it sets err to an error that names the buffer.
func (t *toucher) end(panicked bool, err *error) {
	debug.SetPanicOnFault(panicked)
	if recover() != nil {
		*err = fmt.Errorf("%s begins or ends where this process has no memory that the call may use", t.name)
	}
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
func (a *Args) touch(g *Group, b *Blocks) (err error) {
	var t toucher
	defer t.end(t.begin(), &err)
	root := g.rank == a.Root
	switch {
	case a.Kind == call.KindBroadcast && root, a.Kind == call.KindReduce && !root:
		t.read("buf", a.Out)
	case a.Kind != call.KindGather || root:
		t.write("out", a.Out)
	}
	if a.Kind != call.KindScatter || root {
		t.read("in", a.In)
	}
	if b == nil {
		return nil
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
	return nil
}

// touch checks the buffer of a message.
func (m *PointToPoint) touch() (err error) {
	var t toucher
	defer t.end(t.begin(), &err)
	if m.Kind == call.KindSend {
		t.read("buf", m.buf)
	} else {
		t.write("buf", m.buf)
	}
	return nil
}

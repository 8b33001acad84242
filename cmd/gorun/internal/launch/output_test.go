package launch

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/flow"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/launcher/spool"
)

// TestTooMuchOutput: a host that sends more than it may is lost, so that what it sends never fills the memory here.
func TestTooMuchOutput(t *testing.T) {
	r, w, err := os.Pipe() // which nobody reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	l := &launcher{Config: Config{Rules: Rules{Hosts: []manager.Host{{Name: "n1"}}, Least: 1, Silence: time.Minute}}, hosts: make([]remoteHost, 1), over: make(chan struct{})}
	defer close(l.over)
	h := &l.hosts[0]
	h.cancel = func() {}
	h.output[0] = outputStream{kind: frame.Stdout, sink: flow.NewSink(spool.New().To(w, "stdout").Source(nil))}
	l.machine = newStateMachine(l.Rules, time.Now())
	l.machine.nodes[0].phase = running
	line := []byte(strings.Repeat("x", frame.MaxData-1) + "\n")
	for sent := 0; sent < frame.Window; sent += len(line) {
		h.closed = true // it is told nothing
		l.onFrame(received{0, frame.Stdout, line})
	}
	if l.machine.nodes[0].phase != running {
		t.Fatalf("within the window: %v", l.machine.failure)
	}
	for range 4 * frame.Window / len(line) { // more than any pipe holds
		l.onFrame(received{0, frame.Stdout, line})
	}
	if f := l.machine.failure; f == nil || f.Error() != "host n1: running the job: gorun there has sent more output than it may" {
		t.Errorf("got %v", f)
	}
}

// TestOutputLines: lines come out whole, however they come in, and nothing is lost.
func TestOutputLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o outputStream
		var in, out []byte
		for _, piece := range rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom([]byte("\na")))).Draw(t, "pieces") {
			in = append(in, piece...)
			complete := o.lines(bytes.Clone(piece))
			if n := len(complete); n > 0 && complete[n-1] != '\n' {
				t.Errorf("%q ends within a line", complete)
			}
			out = append(out, complete...)
		}
		if bytes.ContainsRune(o.line, '\n') || !bytes.Equal(append(out, o.line...), in) {
			t.Errorf("%q became %q and %q", in, out, o.line)
		}
	})
	var o outputStream
	long, n := bytes.Repeat([]byte("x"), frame.MaxData), 0
	for range 10 * maxPartial / len(long) {
		n += len(o.lines(long))
		if len(o.line) > maxPartial {
			t.Fatalf("%d bytes are held back", len(o.line))
		}
	}
	if n < 8*maxPartial {
		t.Errorf("%d bytes came out", n)
	}
}

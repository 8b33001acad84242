package launch

import (
	"bytes"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/flow"
	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// An outputStream is what comes from the stdout or stderr of the job on a host. It is passed on in whole lines.
type outputStream struct {
	kind frame.Kind
	sink *flow.Sink
	line []byte // the beginning of a line
}

// maxPartial is how many bytes of a line are held back until its end comes.
const maxPartial = 1 << 20

// onOutput passes on whole lines.
func (l *launcher) onOutput(host, stream int, data []byte) {
	o := &l.hosts[host].output[stream]
	if o.sink.Exceeds(len(data)) {
		l.onBadFrame(host, "more output than it may")
		return
	}
	taken, room := o.sink.Put(o.lines(data), len(data))
	l.returned(host, stream, taken, room)
}

// lines returns what is complete once data has come, and holds back the rest. Neither is copied again as more comes.
func (o *outputStream) lines(data []byte) (complete []byte) {
	end := bytes.LastIndexByte(data, '\n') + 1
	if end > 0 {
		complete, o.line = append(o.line, data[:end]...), nil
	}
	if o.line = append(o.line, data[end:]...); len(o.line) > maxPartial {
		complete, o.line = append(append(complete, o.line...), '\n'), nil
	}
	return complete
}

// returned tells a proxy how much more it may send.
func (l *launcher) returned(host, stream, taken int, room <-chan struct{}) {
	h := &l.hosts[host]
	if taken > 0 && !h.closed {
		h.connection.to.Put(frame.AppendTaken(nil, h.output[stream].kind, taken))
	}
	flow.Await(room, l.over, func() { l.post(hasRoom{host, stream}) })
}

func (l *launcher) finishLine(o *outputStream) {
	if len(o.line) > 0 {
		o.sink.Put(append(o.line, '\n'), 0)
		o.line = nil
	}
}

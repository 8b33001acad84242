package drill

import (
	"fmt"
	"io"
)

// maxLog is how many bytes are kept of what an agent and its workers write to stdout, and of what they write to stderr, if these run the
// user's own program: it may write without end.
const maxLog = 64 << 20

// A boundedLog passes on the first bytes that are written to it, and then says that the rest is left out.
type boundedLog struct {
	to   io.Writer
	left int // bytes that may still be written
}

func (l *boundedLog) Write(p []byte) (int, error) {
	if l.left <= 0 {
		return len(p), nil
	}
	part := p[:min(len(p), l.left)]
	if _, err := l.to.Write(part); err != nil {
		return 0, err
	}
	if l.left -= len(part); l.left <= 0 {
		if _, err := fmt.Fprintln(l.to, "\n(the rest of the output is left out)"); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

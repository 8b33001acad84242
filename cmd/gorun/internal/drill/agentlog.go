package drill

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// workerPrefix is what the lines of workers begin with on the console of an agent. The agent's own lines never begin with it.
const workerPrefix = "["

// linePrefix is the flag that makes gorun write workerPrefix.
const linePrefix = "--log-line-prefix=[${rank}] "

// maxLine is how many bytes are kept of a line that has begun.
const maxLine = 64 << 10

// maxWorkerLog is how many bytes are kept of what the workers of a node write to stdout, and of what they write to stderr: the user's own
// program may write without end.
const maxWorkerLog = 16 << 20

// An agentLog takes what an agent writes to stderr: lines of its own, and those of its workers.
type agentLog struct {
	own     io.Writer         // gets all of the agent's lines. Neither it nor workers fails
	workers io.Writer         // gets the lines of the workers
	line    func(line []byte) // is called for each of the agent's lines
	rest    []byte            // of a line that has begun
	long    bool              // the line that goes on is longer than maxLine
}

func (l *agentLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		l.rest = append(l.rest, rest[:n]...)
		rest = rest[n:]
		if l.rest[len(l.rest)-1] == '\n' || len(l.rest) > maxLine {
			l.flush()
		}
	}
	return len(p), nil
}

// flush passes on what there is of a line.
func (l *agentLog) flush() {
	line := l.rest
	l.rest = l.rest[:0]
	ended := bytes.HasSuffix(line, []byte("\n"))
	isPart := l.long || !ended
	l.long = !ended
	if isPart || bytes.HasPrefix(line, []byte(workerPrefix)) { // an agent writes no lines as long as that
		_, _ = l.workers.Write(line)
		return
	}
	l.line(line)
	_, _ = l.own.Write(line)
}

// A logFile never fails a write, which would end the process that writes to it. It calls fail instead.
type logFile struct {
	to     io.Writer
	fail   func(error)
	failed sync.Once
}

func (l *logFile) Write(p []byte) (int, error) {
	if _, err := l.to.Write(p); err != nil {
		l.failed.Do(func() { l.fail(fmt.Errorf("cannot keep the logs: %w", err)) })
	}
	return len(p), nil
}

// A boundedLog passes on the first bytes that are written to it, and then says that the rest is left out.
type boundedLog struct {
	to   io.Writer // which does not fail
	left int       // bytes that may still be written
}

func (l *boundedLog) Write(p []byte) (int, error) {
	if l.left > 0 {
		_, _ = l.to.Write(p[:min(len(p), l.left)])
		if l.left -= len(p); l.left <= 0 {
			_, _ = fmt.Fprintln(l.to, "\n(the rest of the output is left out)")
		}
	}
	return len(p), nil
}

// A lineWatcher passes on the output of a process, and reports each part of it that ends a line.
type lineWatcher struct {
	to    io.Writer
	found func()
}

func (l *lineWatcher) Write(p []byte) (int, error) {
	if bytes.ContainsRune(p, '\n') {
		l.found()
	}
	return l.to.Write(p)
}

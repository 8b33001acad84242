package cli

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/eventlog"
	"github.com/gorun/gorun/launcher/spool"
)

// An eventLog writes what happens to a job to a file.
type eventLog struct {
	to     *spool.Writer
	source *spool.Source

	mu   sync.Mutex
	last *status.Node // nil: none
}

// eventLogTo opens the file of --event-log. It adds to a file that exists. nil: the user wants none.
func (o *options) eventLogTo(spooled *spool.Spool, logger *slog.Logger) (*eventLog, error) {
	if o.eventLog == "" {
		return nil, nil
	}
	file, err := os.OpenFile(o.path(o.eventLog), os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666) // else a pipe waits for its reader
	if errors.Is(err, syscall.ENXIO) {
		return nil, usagef("%s: nobody reads this pipe: start its reader first", o.given["event-log"])
	}
	if err != nil {
		return nil, usagef("%s: %w", o.given["event-log"], cause(err))
	}
	failed := func(err error) {
		logger.Warn("the event log is not complete", "file", o.eventLog, "error", cause(err))
	}
	to := spooled.Open(spool.File{Open: func() (io.WriteCloser, error) { return file, nil }, Failed: failed, Unclosed: failed})
	return &eventLog{to: to, source: to.Source(nil)}, nil
}

// publish writes what has happened since the last snapshot. It does not wait.
func (l *eventLog) publish(n *status.Node) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(eventlog.Changes(l.last, n)...)
	l.last = n
}

// end writes that the job has ended on this node, with err.
func (l *eventLog) end(err error) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text := ""
	if err != nil {
		text = agent.Printable(oneLine(err.Error()))
	}
	l.write(eventlog.End(l.last, time.Now(), exitCode(err), text))
	l.to.Close()
}

func (l *eventLog) write(events ...eventlog.Event) {
	for _, e := range events {
		line, _ := json.Marshal(e)       // of texts, numbers and times of this century: cannot fail
		l.source.Put(append(line, '\n')) // a file that fails has said so
	}
}

package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/launcher/spool"
	"github.com/gorun/gorun/rendezvous"
)

// An eventLog writes what happens to a job to a file.
type eventLog struct {
	to     *spool.Writer
	source *spool.Source

	mu   sync.Mutex
	last status.Entry // its zero value: none
}

// eventLog opens the file of --event-log. It adds to a file that exists. nil: the user wants none.
func (p *Plan) eventLog(s *Session) (*eventLog, error) {
	if p.EventLog == "" {
		return nil, nil
	}
	wrong := func(err error) error {
		return &rendezvous.MisuseError{Err: fmt.Errorf("%s: %w", p.Given["event-log"], err)}
	}
	file, err := os.OpenFile(p.EventLog, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666) // else a pipe waits for its reader
	if errors.Is(err, syscall.ENXIO) {
		return nil, wrong(errors.New("nobody reads this pipe: start its reader first"))
	}
	if err != nil {
		return nil, wrong(agent.Bare(err))
	}
	failed := func(err error) {
		s.Logger.Warn("the event log is not complete", "file", p.EventLog, "error", agent.Bare(err))
	}
	to := s.Spool.Open(spool.File{Open: func() (io.WriteCloser, error) { return file, nil }, Failed: failed, Unclosed: failed})
	return &eventLog{to: to, source: to.Source(nil)}, nil
}

// add writes what has happened. It does not wait.
func (l *eventLog) add(e status.Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(e)
	l.last = e
}

// end writes that the job has ended on this node, with err.
func (l *eventLog) end(err error, exitCode func(error) int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := status.Entry{
		Time: time.Now().UTC(), Event: status.KindJobEnded, Job: l.last.Job, Host: l.last.Host, Node: l.last.Node, Round: l.last.Round,
		ExitCode: new(exitCode(err)),
	}
	if err != nil {
		e.Text = agent.Printable(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	l.write(e)
	l.to.Close()
}

func (l *eventLog) write(e status.Entry) {
	line, _ := json.Marshal(e)       // of texts, numbers and times of this century: cannot fail
	l.source.Put(append(line, '\n')) // a file that fails has said so
}

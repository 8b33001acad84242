package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/launcher/spool"
)

// stdio is this process's stdout and stderr, for output that must not wait for its reader.
type stdio struct {
	spool    *spool.Spool
	out, err *spool.Writer
	pipes    chan os.Signal // gets SIGPIPE, which so does not end this process
}

func newStdio(stdout, stderr *os.File) *stdio {
	s := &stdio{spool: spool.New(), pipes: make(chan os.Signal, 1)}
	signal.Notify(s.pipes, syscall.SIGPIPE)
	s.out, s.err = s.spool.To(stdout, "stdout"), s.spool.To(stderr, "stderr")
	return s
}

// watch says once what is wrong with stdout or stderr. When their reader has gone away that is an interrupt, as for
// programs that SIGPIPE ends.
func (s *stdio) watch(logger *slog.Logger, interrupts chan<- os.Signal) {
	var once sync.Once
	for _, w := range []*spool.Writer{s.out, s.err} {
		w.Broken(func(err error) {
			if !errors.Is(err, syscall.EPIPE) {
				logger.Warn(fmt.Sprintf("the workers' output is lost, %s cannot be written: %v", w.Name(), cause(err)))
				return
			}
			once.Do(func() {
				select {
				case interrupts <- syscall.SIGPIPE:
				default: // there are others
				}
			})
		})
	}
}

// How long a job, at its end, waits until its output has been read.
var (
	afterSuccess   = spool.Timeouts{Still: 30 * time.Second, Total: 2 * time.Minute}
	afterFailure   = spool.Timeouts{Still: 5 * time.Second, Total: 30 * time.Second}
	afterInterrupt = spool.Timeouts{Still: time.Second, Total: 5 * time.Second}
)

func drainTimeouts(err error) spool.Timeouts {
	switch {
	case err == nil:
		return afterSuccess
	case is[*agent.InterruptError](err):
		return afterInterrupt
	default:
		return afterFailure
	}
}

// finish writes how a command has ended, and waits until all is written, as long as somebody reads. Another interrupt
// ends the wait. Output that was not written makes a failure of a success.
func (s *stdio) finish(err error, limits spool.Timeouts, interrupts <-chan os.Signal) error {
	if err != nil {
		s.say(explain(err))
	}
	quit, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	go func() {
		defer close(quit)
		tell := time.After(noticeDelay)
		for {
			select {
			case <-tell:
				if limits == afterSuccess {
					s.say(fmt.Sprintf("gorun: the job has ended; waiting for its output to be read, at most %v without progress; a signal ends that\n", limits.Still))
				}
			case <-interrupts:
				return
			case <-over:
				return
			}
		}
	}()
	s.spool.Drain(limits, quit)
	lost := s.lost()
	if lost != nil && !is[*agent.InterruptError](lost) || err == nil && lost != nil {
		s.say(explain(lost))
		s.spool.Drain(afterInterrupt, nil)
	}
	if err == nil {
		err = lost
	}
	if err != nil {
		err = &reportedError{err}
	}
	return err
}

// say puts a text on stderr, however much waits there.
func (s *stdio) say(text string) { s.err.Source(nil).Put([]byte(text)) }

// lost says what was not written to stdout, or else to stderr; nil: nothing.
func (s *stdio) lost() error {
	for _, w := range []*spool.Writer{s.out, s.err} {
		bytes, err := w.Loss()
		switch {
		case errors.Is(err, syscall.EPIPE):
			return &agent.InterruptError{Signal: syscall.SIGPIPE}
		case err != nil:
			return &outputError{w.Name(), bytes, err}
		}
	}
	return nil
}

// An outputError says that output was not written.
type outputError struct {
	name  string
	bytes int64 // that were not, or may not have been
	err   error
}

func (e *outputError) Error() string {
	return fmt.Sprintf("%s: %v: up to %d bytes were not written", e.name, cause(e.err), e.bytes)
}

func (e *outputError) Unwrap() error { return e.err }

// A reportedError is on stderr already.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }

// cause leaves the operation and the file out of an error.
func cause(err error) error {
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		return failed.Err
	}
	return err
}

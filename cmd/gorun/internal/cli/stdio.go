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

// stdio writes to this process's stdout and stderr without waiting for their reader.
type stdio struct {
	spool    *spool.Spool
	out, err *spool.Writer
	color    bool           // stderr is a terminal that shows colors
	pipes    chan os.Signal // gets SIGPIPE, which so does not end this process
	silent   bool           // somebody else says how the command ended
}

func newStdio(stdout, stderr *os.File) *stdio {
	s := &stdio{spool: spool.New(), pipes: make(chan os.Signal, 1), color: wantsColor(stderr)}
	signal.Notify(s.pipes, syscall.SIGPIPE)
	s.out, s.err = s.spool.To(stdout, "stdout"), s.spool.To(stderr, "stderr")
	return s
}

// watch logs once if stdout or stderr cannot be written. If the reader has gone away, it sends an interrupt,
// because SIGPIPE would end an ordinary program.
func (s *stdio) watch(logger *slog.Logger, interrupts chan<- os.Signal) {
	var once sync.Once
	for _, w := range []*spool.Writer{s.out, s.err} {
		w.Broken(func(err error) {
			if !errors.Is(err, syscall.EPIPE) {
				logger.Warn(fmt.Sprintf("the workers' output is lost: cannot write to %s: %v", w.Name(), agent.Bare(err)))
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

// How long gorun waits, at the end of a job, until its output has been read.
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

// finish writes how a command ended, and waits until all output is written, as long as somebody reads it. Another
// interrupt ends the wait. Output that was not written turns success into failure.
func (s *stdio) finish(err error, limits spool.Timeouts, interrupts <-chan os.Signal) error {
	if err != nil && !s.silent {
		s.say(explain(self, err, s.color))
	}
	quit, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	go func() {
		defer close(quit)
		tell := time.After(time.Second)
		for {
			select {
			case <-tell:
				if limits == afterSuccess {
					s.say(fmt.Sprintf("gorun: the job has ended; waiting until its output has been read, at most %v without progress; a signal ends the wait\n", limits.Still))
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
		if !s.silent {
			s.say(explain(self, lost, s.color))
		}
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

// say queues a text for stderr, however much is waiting there.
func (s *stdio) say(text string) { s.err.Source(nil).Put([]byte(text)) }

// lost returns an error if something was not written to stdout or stderr.
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
	return fmt.Sprintf("%s: %v: up to %d bytes were not written", e.name, agent.Bare(e.err), e.bytes)
}

func (e *outputError) Unwrap() error { return e.err }

// A reportedError is on stderr already.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }

package launcher

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"
)

const (
	readSize  = 64 << 10               // what a pipe holds
	firstRead = 4 << 10                // most workers write less at once
	idle      = 100 * time.Millisecond // after which a terminal shows a line that has not ended
)

// stream carries one output stream of one worker from its pipe to the console, the log file and the tail.
// One goroutine owns it; others only call sync and close.
type stream struct {
	which    Std
	pipe     *os.File // the agent's end, non-blocking
	route    streamRoute
	console  *console
	failures *failures

	prefix   []byte // of its lines on the console
	plain    []byte // of those in the filter's file
	lines    lines
	batch    []byte // whole lines that the console has yet to get
	filtered []byte // whole lines that the filter has yet to get
	tail     *tail  // nil: not kept

	syncing atomic.Bool   // sync waits for an answer
	synced  chan []string // answers sync
	done    chan struct{} // closed when the goroutine has ended
}

func newStream(which Std, pipe *os.File, route streamRoute, o *output) *stream {
	s := &stream{
		which: which, pipe: pipe, route: route, console: o.console, failures: o.failures,
		synced: make(chan []string), done: make(chan struct{}),
	}
	if which == Stderr {
		s.tail = &tail{}
	}
	s.lines = lines{max: maxLine, emit: s.line}
	if o.spec.Live {
		s.lines.bar = s.bar
	}
	return s
}

// run reads until every holder of the pipe has closed it, or close is called.
func (s *stream) run() {
	defer close(s.done)
	defer s.end()
	buf := make([]byte, firstRead)
	for {
		n, err := s.pipe.Read(buf)
		s.take(buf[:n])
		if n == firstRead && len(buf) == firstRead {
			buf = make([]byte, readSize)
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && s.syncing.Swap(false):
			if err = s.catchUp(buf); err == nil {
				s.synced <- s.last()
			}
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.pause()
			err = s.wakeAt(time.Time{})
		case err == nil && s.lines.bar != nil && len(s.lines.partial) > 0:
			err = s.wakeAt(time.Now().Add(idle))
		}
		if err != nil { // io.EOF, or os.ErrClosed after close
			return
		}
	}
}

// wakeAt lets the reader wake at a time, or at once if sync waits for it: its deadline must not be lost.
func (s *stream) wakeAt(at time.Time) error {
	err := s.pipe.SetReadDeadline(at)
	if s.syncing.Load() {
		return s.pipe.SetReadDeadline(time.Unix(1, 0))
	}
	return err
}

// sync returns when all that is in the pipe now has been passed on, with the last lines. The worker having
// exited, that is all it wrote; others that hold the pipe may go on writing and are not waited for. Only
// one call at a time.
func (s *stream) sync() []string {
	s.syncing.Store(true)
	_ = s.pipe.SetReadDeadline(time.Unix(1, 0)) // wakes the reader; fails only if it has ended
	select {
	case last := <-s.synced:
		return last
	case <-s.done:
		return s.last()
	}
}

// close ends the stream, whoever holds its pipe.
func (s *stream) close() {
	_ = s.pipe.Close()
	<-s.done
}

// catchUp is the reader's half of sync. It reads as much as the pipe holds at its start, no more: somebody
// else may be writing for ever.
func (s *stream) catchUp(buf []byte) error {
	if err := s.pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	pending, err := unread(s.pipe)
	if err != nil {
		return err
	}
	for pending > 0 {
		n, err := s.pipe.Read(buf)
		s.take(buf[:n])
		if err != nil {
			return err
		}
		pending -= n
	}
	s.settle()
	return nil
}

// take passes b on: raw to the file, as whole lines to the console, the filter and the tail.
func (s *stream) take(b []byte) {
	if s.route.file != nil {
		if _, err := s.route.file.Write(b); err != nil {
			s.fileFailed(err) // all of b goes to the console: rather twice than not at all
		}
	}
	if s.route.console || s.route.filter != nil || s.tail != nil {
		s.lines.feed(b)
		s.flush()
	}
}

func (s *stream) fileFailed(err error) {
	s.failures.add(givenUp, err)
	_ = s.route.file.Close() // the write error says it all
	s.route.file, s.route.console = nil, true
}

// line passes on one line, or a piece of one that has not ended.
func (s *stream) line(b []byte, ended bool) {
	if s.tail != nil {
		s.tail.add(visible(b))
	}
	if s.route.filter != nil && s.route.filter.wants(b) {
		s.filtered = appendLine(s.filtered, s.plain, b)
	}
	if !s.route.console {
		return
	}
	if s.lines.bar != nil {
		if !ended && bytes.HasSuffix(b, []byte("\r")) {
			return // a progress bar, and nothing after it
		}
		b = visible(b)
	}
	s.batch = appendLine(s.batch, s.prefix, b)
}

func appendLine(dst, prefix, line []byte) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, line...)
	return append(dst, '\n')
}

// bar shows what there is of an unfinished line on a console that can erase it.
func (s *stream) bar(text []byte) {
	if s.route.console && len(text) > 0 {
		s.flush() // the lines before it
		s.console.show(s, text)
	}
}

// pause shows a line that its worker does not go on with, which may be a question.
func (s *stream) pause() {
	if text := visible(s.lines.partial); s.route.console && len(text) > 0 {
		s.flush()
		s.console.ask(s, text)
	}
}

func (s *stream) flush() {
	if len(s.filtered) > 0 {
		if !s.route.filter.write(s.filtered) && !s.route.console {
			s.console.write(s.which, s.filtered)
		}
		s.filtered = s.filtered[:0]
	}
	if len(s.batch) > 0 {
		s.console.write(s.which, s.batch)
		s.batch = s.batch[:0]
	}
}

// settle passes on an unfinished line and leaves no progress bar behind.
func (s *stream) settle() {
	s.lines.flush()
	s.flush()
	s.console.erase(s)
}

func (s *stream) last() []string {
	if s.tail == nil {
		return nil
	}
	return s.tail.last(s.console.raw)
}

func (s *stream) end() {
	s.settle()
	if s.route.filter != nil {
		s.route.filter.release()
	}
	if s.route.file == nil {
		return
	}
	if err := s.route.file.Close(); err != nil {
		s.failures.add("log file may lack its end", err)
	}
}

package launcher

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/launcher/spool"
)

const (
	readSize  = 64 << 10               // what a pipe holds, unless its user makes it longer; a pseudo terminal holds less
	firstRead = 4 << 10                // most workers write less at once
	idle      = 100 * time.Millisecond // after which a terminal shows a line that has not ended
)

// How many bytes of a stream may wait for each destination before reading pauses. The limit is higher for a worker that is
// being stopped, so that it is not killed because nobody reads its last output.
const (
	streamShare = 64 << 10
	leaverShare = 1 << 20
)

// stream carries one output stream of one worker from its pipe to the console, the log file and the tail. One goroutine
// owns it, and waits only for the pipe and for room in its queues; others only call sync, stopping and close.
type stream struct {
	which   Std
	pipe    *os.File // the agent's end, non-blocking; or that of a pseudo terminal
	console *Console

	onConsole bool
	room      int           // bytes of lines that the console may still get; negative: any number
	shown     *spool.Source // to the console
	file      *spool.Writer // nil: no file
	stored    *spool.Source // to the file
	filter    *filter       // nil: none
	selected  *spool.Source // to the filter's file

	prefix   atomic.Pointer[prefixes]
	stamped  bool   // lines on the console have a time stamp
	stamp    []byte // of the lines that are being passed on; empty: not stamped
	lines    lines
	batch    []byte  // whole lines that the console has yet to get
	filtered []byte  // whole lines that the filter has yet to get
	tail     *tail   // nil: not kept
	recent   *Recent // gets all bytes; nil: nobody wants them
	local    int     // rank of the worker, for recent
	inLine   bool    // the last byte that recent got has not ended a line

	isStopping atomic.Bool   // its worker is being stopped
	isBlocked  atomic.Bool   // a destination has no room
	hurry      chan struct{} // has room for one; ends a wait for room
	syncing    atomic.Bool   // sync waits for an answer
	synced     chan []string // answers sync
	done       chan struct{} // closed when the goroutine has ended
}

// prefixes are what stands before the lines of a stream.
type prefixes struct {
	painted []byte // on the console
	plain   []byte // in the filter's file
}

func newStream(which Std, pipe *os.File, o *output) *stream {
	s := &stream{
		which: which, pipe: pipe, console: o.console, room: -1, shown: o.console.source(which), stamped: o.spec.Timestamps,
		hurry: make(chan struct{}, 1), synced: make(chan []string), done: make(chan struct{}),
	}
	s.prefix.Store(&prefixes{})
	if which == Stderr {
		s.tail = &tail{}
	}
	s.lines = lines{max: maxLine, emit: s.line}
	if o.spec.Live {
		s.lines.bar = s.bar
	}
	return s
}

// setFile makes the stream's bytes go to a file too. If the file fails, bytes that would not be shown are shown.
func (s *stream) setFile(file *spool.Writer) {
	rescue := s.rescue
	if s.onConsole {
		rescue = nil
	}
	s.file, s.stored = file, file.Source(rescue)
}

// setFilter makes lines that a filter wants go to its file too.
func (s *stream) setFilter(f *filter) {
	rescue := func(lines []byte) { s.console.write(s.shown, lines) }
	if s.onConsole {
		rescue = nil
	}
	s.filter, s.selected = f, f.file.Source(rescue)
}

// rescue shows what a file did not accept.
func (s *stream) rescue(b []byte) {
	var text []byte
	for line := range bytes.Lines(b) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if s.lines.bar != nil {
			line = Visible(line)
		}
		if s.stamped {
			text = appendStamp(text, time.Now())
		}
		text = appendLine(text, s.prefix.Load().painted, line)
	}
	s.console.write(s.shown, text)
}

// run reads until every holder of the pipe has closed it, or close is called.
func (s *stream) run() {
	defer close(s.done)
	defer s.end()
	buf := make([]byte, firstRead)
	for {
		s.awaitQueues()
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
		if err != nil { // io.EOF, of a pseudo terminal EIO, or os.ErrClosed after close
			return
		}
	}
}

// close ends the stream, whoever holds its pipe.
func (s *stream) close() {
	_ = s.pipe.Close()
	s.wake()
	<-s.done
}

// catchUp is the reader's half of sync. It reads only as much as the pipe can have held at its start, because another
// process may write forever.
func (s *stream) catchUp(buf []byte) error {
	if err := s.pipe.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	pending, err := unread(s.pipe)
	if err != nil {
		return err
	}
	for left := max(pending, readSize); left > 0; {
		n := readNow(s.pipe, buf)
		if n == 0 {
			break
		}
		s.take(buf[:n])
		left -= n
	}
	s.finishLine()
	return nil
}

// take passes on b: raw to the file and the recent bytes, and as whole lines to the console, the filter and the tail.
func (s *stream) take(b []byte) {
	if s.recent != nil && len(b) > 0 {
		s.recent.Add(s.local, s.which, b)
		s.inLine = b[len(b)-1] != '\n'
	}
	if s.file != nil && !s.stored.Put(b) {
		s.file, s.stored, s.onConsole = nil, nil, true
	}
	if s.onConsole || s.filter != nil || s.tail != nil {
		if s.stamped && len(b) > 0 {
			s.stamp = appendStamp(s.stamp[:0], time.Now())
		}
		s.lines.feed(b)
		s.flush()
	}
}

// line passes on one line, or a piece of a line that has not ended.
func (s *stream) line(b []byte, ended bool) {
	if s.tail != nil {
		s.tail.add(Visible(b))
	}
	if s.filter != nil && s.filter.wants(b) {
		s.filtered = appendLine(s.filtered, s.prefix.Load().plain, b)
	}
	if !s.onConsole {
		return
	}
	if s.lines.bar != nil {
		if !ended && bytes.HasSuffix(b, []byte("\r")) {
			return // a progress bar, and nothing after it
		}
		b = Visible(b)
	}
	prefix := s.prefix.Load().painted
	if s.room >= 0 {
		if s.room -= len(prefix) + len(b); s.room < 0 {
			b, s.onConsole = []byte("(the rest is left out)"), false
		}
	}
	s.batch = appendLine(append(s.batch, s.stamp...), prefix, b)
}

// appendStamp appends a time in the form of docker logs --timestamps and kubectl logs --timestamps (RFC 3339, UTC), and a blank.
func appendStamp(dst []byte, at time.Time) []byte {
	return at.UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z ")
}

func appendLine(dst, prefix, line []byte) []byte {
	dst = append(dst, prefix...)
	dst = append(dst, line...)
	return append(dst, '\n')
}

// bar shows an unfinished line on a console that can erase it.
func (s *stream) bar(text []byte) {
	if s.onConsole && len(text) > 0 {
		s.flush() // the lines before it
		s.console.show(s, text)
	}
}

// pause shows an unfinished line that its worker does not continue: it may be a question.
func (s *stream) pause() {
	if text := Visible(s.lines.partial); s.onConsole && len(text) > 0 {
		s.flush()
		s.console.ask(s, text)
	}
}

func (s *stream) flush() {
	if len(s.filtered) > 0 {
		if !s.selected.Put(s.filtered) && !s.onConsole {
			s.console.write(s.shown, s.filtered)
		}
		s.filtered = s.filtered[:0]
	}
	if len(s.batch) > 0 {
		s.console.write(s.shown, s.batch)
		s.batch = s.batch[:0]
	}
}

// finishLine passes on an unfinished line and leaves no progress bar behind.
func (s *stream) finishLine() {
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
	s.finishLine()
	if s.recent != nil && s.inLine { // another worker may go on
		s.recent.Add(s.local, s.which, []byte("\n"))
	}
	if s.filter != nil {
		s.filter.release()
	}
	if s.file != nil {
		s.file.Close()
	}
}

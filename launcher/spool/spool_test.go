package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// A reader takes what is written to it when it is told to.
type reader struct {
	mu    sync.Mutex
	got   bytes.Buffer
	takes chan int // how much of a write is taken before it goes on; closed: all
}

func newReader() *reader { return &reader{takes: make(chan int)} }

func (r *reader) Write(b []byte) (int, error) {
	for n := 0; n < len(b); {
		take, blocks := <-r.takes
		if !blocks {
			take = len(b)
		}
		take = min(take, len(b)-n)
		r.mu.Lock()
		r.got.Write(b[n : n+take])
		r.mu.Unlock()
		n += take
	}
	return len(b), nil
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

// TestFairShares: who floods a destination that nobody reads is asked to stop at its share, and delays another's line by
// that share at most. Order within each source is kept.
func TestFairShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share = 1000
		s, r := New(), newReader()
		w := s.To(r, "stdout")
		flood, other := w.Source(nil), w.Source(nil)
		var puts int
		for ; flood.Full(share) == nil; puts++ {
			flood.Put(fmt.Appendf(nil, "flood %d\n", puts))
		}
		if other.Full(share) != nil {
			t.Error("a source is full because another is")
		}
		other.Put([]byte("other\n"))
		room := flood.Full(share)
		synctest.Wait()
		select {
		case <-room:
			t.Error("there is room although nothing was read")
		default:
		}
		close(r.takes)
		<-room
		s.Drain(Timeouts{Still: time.Second, Total: time.Second}, nil)
		before, _, _ := strings.Cut(r.text(), "other\n")
		if len(before) > share+len("flood 1000\n") {
			t.Errorf("a line waited for %d bytes of another source, whose share is %d", len(before), share)
		}
		var want strings.Builder
		for i := range puts {
			fmt.Fprintf(&want, "flood %d\n", i)
		}
		if got := strings.ReplaceAll(r.text(), "other\n", ""); got != want.String() {
			t.Errorf("got %q", got)
		}
		if lost, err := w.Loss(); lost != 0 || err != nil {
			t.Errorf("lost %d, %v", lost, err)
		}
	})
}

// TestDrain: a reader that goes on, however slowly, is waited for; one that does not, and one that takes too long in all,
// are given up, and so is everybody when somebody is in a hurry.
func TestDrain(t *testing.T) {
	const bytesPut = 10 * smallPiece
	for _, c := range []struct {
		name  string
		pause time.Duration // between pieces of smallPiece bytes; 0: nothing is read
		total time.Duration
		quit  time.Duration // 0: never
		lost  int64
		takes time.Duration
	}{
		{name: "slow", pause: 200 * time.Millisecond, total: time.Minute, takes: 2 * time.Second},
		{name: "too slow", pause: time.Minute, total: time.Hour, lost: bytesPut, takes: time.Second},
		{name: "too slow in all", pause: 200 * time.Millisecond, total: 1100 * time.Millisecond, lost: bytesPut / 2, takes: 1100 * time.Millisecond},
		{name: "blocked", total: time.Minute, lost: bytesPut, takes: time.Second},
		{name: "hurry", total: time.Minute, quit: time.Second / 2, lost: bytesPut, takes: time.Second / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := New(), newReader()
				over := make(chan struct{})
				go func() {
					defer close(r.takes)
					for i := 0; ; i++ {
						if c.pause == 0 {
							<-over
							return
						}
						select {
						case <-time.After(c.pause):
							select {
							case r.takes <- smallPiece:
							case <-over:
								return
							}
						case <-over:
							return
						}
					}
				}()
				w := s.To(r, "stdout")
				source := w.Source(nil)
				source.Put([]byte(strings.Repeat(strings.Repeat("x", 63)+"\n", bytesPut/64)))
				var quit chan struct{}
				if c.quit > 0 {
					quit = make(chan struct{})
					time.AfterFunc(c.quit, func() { close(quit) })
				}
				begun := time.Now()
				s.Drain(Timeouts{Still: time.Second, Total: c.total}, quit)
				if took := time.Since(begun); took != c.takes {
					t.Errorf("it took %v, want %v", took, c.takes)
				}
				lost, err := w.Loss()
				if lost != c.lost || errors.Is(err, ErrUnread) != (c.lost > 0) {
					t.Errorf("lost %d, want %d: %v", lost, c.lost, err)
				}
				if source.Put([]byte("late\n")) == (c.lost > 0) {
					t.Error("what was given up takes more, or what was not takes nothing")
				}
				close(over)
				synctest.Wait()
			})
		})
	}
}

// TestMessagesNeverWait: a program's own messages are dropped rather than wait, and that is told.
func TestMessagesNeverWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := New(), newReader()
		w := s.To(r, "stderr")
		line := []byte(strings.Repeat("m", 1<<10-1) + "\n")
		for range 3 << 10 {
			if n, err := w.Write(line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
		}
		close(r.takes)
		s.Drain(Timeouts{Still: time.Second, Total: time.Second}, nil)
		if n := len(r.text()); n > ownShare+2<<10 {
			t.Errorf("%d bytes were kept", n)
		}
		if want := "\ngorun: number of messages that are missing here because nobody read stderr: 2047\n"; !strings.HasSuffix(r.text(), want) {
			t.Errorf("the last line is %q", r.text()[len(r.text())-len(want):])
		}
	})
}

// TestOneOpenFile: stdout and stderr that are one pipe get whole lines in the order in which they were put, whatever
// fits into a pipe at once.
func TestOneOpenFile(t *testing.T) {
	r, w := testkit.Pipe(t)
	fd, err := unix.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(fd), "other")
	defer func() { _ = other.Close() }()
	s := New()
	out, errs := s.To(w, "stdout").Source(nil), s.To(other, "stderr").Source(nil)
	var want strings.Builder
	for i := range 40 {
		line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 5000+i))
		want.WriteString(line)
		[]*Source{out, errs}[i%2].Put([]byte(line))
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want.String() {
		t.Errorf("%v: the lines are mixed", err)
	}
	s.Drain(Timeouts{Still: time.Minute, Total: time.Minute}, nil)
}

// TestNonBlocking: somebody who shares the open file may make it non-blocking, which loses nothing.
func TestNonBlocking(t *testing.T) {
	r, w := testkit.Pipe(t)
	if err := unix.SetNonblock(int(w.Fd()), true); err != nil {
		t.Fatal(err)
	}
	s := New()
	writer := s.To(w, "stdout")
	text := bytes.Repeat([]byte("a line that fills the pipe\n"), 20000)
	writer.Source(nil).Put(text)
	got := make([]byte, len(text))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%v: the text is another", err)
	}
	s.Drain(Timeouts{Still: time.Minute, Total: time.Minute}, nil)
	if lost, err := writer.Loss(); lost != 0 || err != nil {
		t.Errorf("lost %d: %v", lost, err)
	}
}

// A broken destination is told of once; of one whose reader has gone away nothing more is tried.
func TestBroken(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EPIPE} {
		var writes, told int
		s := New()
		w := s.To(writerFunc(func(b []byte) (int, error) { writes++; return 1, err }), "stdout")
		w.Broken(func(got error) {
			if told++; !errors.Is(got, err) {
				t.Errorf("told %v", got)
			}
		})
		for range 3 {
			w.Source(nil).Put([]byte("line\n"))
			s.Drain(Timeouts{Still: time.Minute, Total: time.Minute}, nil)
		}
		wantWrites, wantLost := 3, int64(12)
		if errors.Is(err, syscall.EPIPE) {
			wantWrites, wantLost = 1, 14
		}
		if lost, _ := w.Loss(); writes != wantWrites || told != 1 || lost != wantLost {
			t.Errorf("%v: %d writes, told %d times, lost %d", err, writes, told, lost)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

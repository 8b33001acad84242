package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// A bed is a proxy with a launcher and a job that a test plays.
type bed struct {
	t       *testing.T
	to      *io.PipeWriter // the launcher's end
	frames  chan string    // what the proxy says; closed at the end
	hello   frame.Hello
	done    chan error
	signals chan os.Signal

	stdin          *io.PipeReader // of the job
	stdout, stderr *io.PipeWriter
	end            chan frame.Outcome
	job            frame.Job
	report         func(report)

	mu  sync.Mutex
	got []syscall.Signal
}

const silence, grace = 10 * time.Second, 20 * time.Second

func newBed(t *testing.T, fail error) *bed {
	b := &bed{t: t, frames: make(chan string, 1000), done: make(chan error, 1), signals: make(chan os.Signal, 1), end: make(chan frame.Outcome, 1)}
	in, to := io.Pipe()
	from, out := io.Pipe()
	b.to = to
	start := func(job frame.Job, said func(report)) (*Process, error) {
		if b.job, b.report = job, said; fail != nil {
			return nil, fail
		}
		var stdin io.WriteCloser
		var stdout, stderr io.Reader
		b.stdin, stdin = io.Pipe()
		stdout, b.stdout = io.Pipe()
		stderr, b.stderr = io.Pipe()
		return &Process{Stdin: stdin, Stdout: stdout, Stderr: stderr, Signal: func(sig syscall.Signal) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.got = append(b.got, sig)
		}, Wait: func() frame.Outcome { return <-b.end }}, nil
	}
	go func() {
		b.done <- Run(in, out, Config{Hello: frame.Hello{Protocol: frame.Protocol, Version: "1"}, Signals: b.signals, Start: start})
		_ = out.Close()
	}()
	r := bufio.NewReader(from)
	var err error
	if b.hello, err = frame.ReadHello(r); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.frames)
		for {
			kind, payload, err := frame.Read(r)
			if err != nil {
				return
			}
			b.frames <- string(rune('0'+kind)) + string(payload)
		}
	}()
	return b
}

func (b *bed) send(kind frame.Kind, payload []byte) {
	b.t.Helper()
	if _, err := b.to.Write(frame.Append(nil, kind, payload)); err != nil {
		b.t.Error(err)
	}
	synctest.Wait()
}

func (b *bed) start() {
	b.t.Helper()
	b.send(frame.Start, frame.Encode(frame.Job{Args: [][]byte{[]byte("n1"), []byte("true")}, Stdin: true, Heartbeat: time.Second, Silence: silence, Grace: grace}))
}

// said returns the frames that have come, without heartbeats, which it counts.
func (b *bed) said() (text []string, heartbeats int) {
	synctest.Wait()
	for {
		select {
		case f, ok := <-b.frames:
			switch {
			case !ok:
				return text, heartbeats
			case f == string(rune('0'+frame.Heartbeat)):
				heartbeats++
			default:
				text = append(text, f)
			}
		default:
			return text, heartbeats
		}
	}
}

func (b *bed) signalled() []syscall.Signal {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *bed) wantDone(want string) {
	b.t.Helper()
	synctest.Wait()
	select {
	case err := <-b.done:
		if got := errors.Join(err); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(got.Error(), want)) {
			b.t.Errorf("the proxy ends with %v, want %q", err, want)
		}
	default:
		b.t.Errorf("the proxy has not ended")
	}
}

func TestJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		if b.hello.Version != "1" || len(b.job.Args) != 2 {
			t.Errorf("hello %+v, job %+v", b.hello, b.job)
		}
		_, _ = io.WriteString(b.stdout, "out\n")
		synctest.Wait()
		_, _ = io.WriteString(b.stderr, "err\n")
		b.send(frame.Signal, []byte{10})
		b.send(frame.Stdin, []byte("line\n"))
		line := make([]byte, 10)
		n, err := b.stdin.Read(line)
		b.send(frame.Stdin, nil)
		if _, end := b.stdin.Read(line[n:]); string(line[:n]) != "line\n" || err != nil || !errors.Is(end, io.EOF) {
			t.Errorf("the job reads %q, %v, then %v", line[:n], err, end)
		}
		time.Sleep(3500 * time.Millisecond)
		b.end <- frame.Outcome{Code: 3, Cause: frame.Worker, Text: "summary\n"}
		synctest.Wait()
		_, _ = io.WriteString(b.stderr, "last\n")
		_, _ = b.stdout.Close(), b.stderr.Close()
		text, heartbeats := b.said()
		want := []string{"5out\n", "6err\n", "6last\n", `7{"code":3,"cause":"worker","text":"summary\n"}`}
		if !slices.Equal(text, want) || heartbeats != 3 {
			t.Errorf("%q with %d heartbeats, want %q with 3", text, heartbeats, want)
		}
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{10}) {
			t.Errorf("signals %v", got)
		}
		b.wantDone("")
		_ = b.to.Close()
	})
}

// TestWindow: output that the launcher does not take waits in the job, and does not hold up heartbeats. None of it is lost.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		text := bytes.Repeat([]byte("0123456789abcdef"), 3*frame.Window/16)
		go func() {
			_, _ = b.stdout.Write(text)
			_ = b.stdout.Close()
		}()
		_ = b.stderr.Close()
		var got []byte
		take := func() (n, heartbeats int) {
			pieces, heartbeats := b.said()
			for _, p := range pieces {
				if !strings.HasPrefix(p, "5") {
					t.Fatalf("%.40q", p)
				}
				got = append(got, p[1:]...)
				n += len(p) - 1
			}
			return n, heartbeats
		}
		if n, _ := take(); n != frame.Window {
			t.Errorf("%d bytes come at first, want %d", n, frame.Window)
		}
		b.end <- frame.Outcome{}
		for range 8 {
			time.Sleep(2 * time.Second)
			b.send(frame.Heartbeat, nil)
		}
		if n, heartbeats := take(); n != 0 || heartbeats != 16 {
			t.Errorf("then %d bytes and %d heartbeats, want 0 and 16", n, heartbeats)
		}
		b.send(frame.Taken, frame.AppendTaken(nil, frame.Stdout, 1000)[5:])
		if n, _ := take(); n != 1000 {
			t.Errorf("then %d bytes, want 1000", n)
		}
		for len(got) < len(text) {
			b.send(frame.Taken, frame.AppendTaken(nil, frame.Stdout, frame.Window)[5:])
			pieces, _ := b.said()
			for _, p := range pieces {
				if p[0] == '5' {
					got = append(got, p[1:]...)
				}
			}
		}
		if !bytes.Equal(got, text) {
			t.Error("other output has come")
		}
		b.wantDone("")
		_ = b.to.Close()
	})
}

// TestUnread: a launcher that reads nothing, because nobody reads what it writes, holds up the end of a job for a bounded time, or until
// it says that the job is to end. Output that is lost is no success.
func TestUnread(t *testing.T) {
	stopped := frame.Outcome{Code: 143, Cause: frame.Stopped, Text: "stopped", Signal: 15}
	for name, c := range map[string]struct {
		outcome frame.Outcome
		say     func(*bed)
		after   time.Duration
		want    string
	}{
		"success":     {frame.Outcome{}, func(*bed) {}, 30 * time.Second, `7{"code":1,"cause":"other","text":"nobody reads the output: the end of it is lost"}`},
		"failure":     {frame.Outcome{Code: 3, Cause: frame.Worker, Text: "summary\n"}, func(*bed) {}, 5 * time.Second, `7{"code":3,"cause":"worker","text":"summary\ngorun: nobody reads the output: the end of it is lost\n"}`},
		"stopped":     {stopped, func(*bed) {}, time.Second, `7{"code":143,"cause":"stopped","text":"stopped; nobody reads the output: the end of it is lost","signal":15}`},
		"a late kill": {stopped, func(b *bed) { b.send(frame.Kill, nil) }, 0, `7{"code":143,"cause":"stopped","text":"stopped; nobody reads the output: the end of it is lost","signal":15}`},
		"a late signal": {frame.Outcome{}, func(b *bed) {
			b.send(frame.Signal, []byte{byte(syscall.SIGUSR1)})
			b.send(frame.Signal, []byte{byte(syscall.SIGTERM)})
		}, 0, `7{"code":1,"cause":"other","text":"nobody reads the output: the end of it is lost"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, nil)
				b.start()
				go func() { _, _ = b.stdout.Write(make([]byte, 2*frame.Window)) }()
				b.said()
				b.end <- c.outcome
				synctest.Wait()
				begin := time.Now()
				c.say(b)
				for time.Since(begin) < c.after {
					if text, _ := b.said(); len(text) > 0 {
						t.Errorf("after %v: %q", time.Since(begin), text)
					}
					b.send(frame.Heartbeat, nil)
					time.Sleep(500 * time.Millisecond)
				}
				if text, _ := b.said(); !slices.Equal(text, []string{c.want}) {
					t.Errorf("%q, want %s", text, c.want)
				}
				b.wantDone("")
				_, _, _ = b.to.Close(), b.stdout.Close(), b.stderr.Close()
			})
		})
	}
}

// TestStdinWindow: the launcher gets back what the job has read, and no more.
func TestStdinWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		for range frame.Window / frame.MaxData {
			b.send(frame.Stdin, make([]byte, frame.MaxData))
		}
		returned := func() (n int) {
			text, _ := b.said()
			for _, f := range text {
				_, more, err := frame.ParseTaken([]byte(f[1:]))
				if err != nil || f[0] != '8' {
					t.Errorf("%q: %v", f, err)
				}
				n += more
			}
			return n
		}
		early := returned()
		if early > frame.Window/2 {
			t.Errorf("%d bytes are returned, and the job has read none", early)
		}
		if _, err := io.ReadFull(b.stdin, make([]byte, frame.Window)); err != nil {
			t.Error(err)
		}
		if late := returned(); early+late < frame.Window-frame.Window/4 {
			t.Errorf("%d bytes are returned, and the job has read %d", early+late, frame.Window)
		}
		_ = b.to.Close()
		b.end <- frame.Outcome{}
		b.wantDone("the connection to the launcher has ended")
		_, _ = b.stdout.Close(), b.stderr.Close()
	})
}

// TestLostLauncher: when nobody is at the other end, the job ends, with its grace.
func TestLostLauncher(t *testing.T) {
	for name, lose := range map[string]func(*bed){
		"end of file": func(b *bed) { _ = b.to.Close() },
		"silence":     func(*bed) { time.Sleep(silence) },
		"nonsense":    func(b *bed) { _, _ = b.to.Write([]byte("nonsense")) },
		"two jobs":    func(b *bed) { b.start() },
		"wrong frame": func(b *bed) { b.send(frame.Stdout, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, nil)
				b.start()
				for range 5 {
					time.Sleep(silence - 1)
					b.send(frame.Heartbeat, nil)
				}
				if got := b.signalled(); got != nil {
					t.Errorf("signals %v while the launcher lives", got)
				}
				lose(b)
				if got := b.signalled(); !slices.Equal(got, []syscall.Signal{15}) {
					t.Errorf("signals %v, want 15", got)
				}
				// What the job still writes holds up nothing.
				_, _ = b.stdout.Write(make([]byte, 3*frame.Window))
				time.Sleep(grace + killMargin)
				if got := b.signalled(); !slices.Equal(got, []syscall.Signal{15, 9}) {
					t.Errorf("signals %v, want 15 and 9", got)
				}
				b.end <- frame.Outcome{Code: 137, Cause: frame.Other}
				synctest.Wait()
				select {
				case err := <-b.done:
					if err == nil {
						t.Error("no error")
					}
				default:
					t.Error("the proxy has not ended")
				}
				_, _, _ = b.to.Close(), b.stdout.Close(), b.stderr.Close()
			})
		})
	}
}

// TestFrozen: the proxy does not answer for a gorun that is frozen. When the launcher has given it up, gorun is killed at once.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		begin, _ := b.said()
		time.Sleep(3500 * time.Millisecond) // it begins
		_, heartbeats := b.said()
		for range 5 {
			b.report(report{})
			time.Sleep(time.Second)
		}
		if _, n := b.said(); begin != nil || heartbeats != 3 || n != 5 {
			t.Errorf("%q, %d heartbeats of the proxy, %d of gorun: want 3 and 5", begin, heartbeats, n)
		}
		for range 9 {
			b.send(frame.Heartbeat, nil)
			time.Sleep(time.Second)
		}
		if text, n := b.said(); text != nil || n != 0 {
			t.Errorf("it is frozen: %q, %d heartbeats", text, n)
		}
		_ = b.to.Close()
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{9}) {
			t.Errorf("signals %v, want 9", got)
		}
		b.end <- frame.Outcome{Code: 137, Cause: frame.Died}
		b.wantDone("the connection to the launcher has ended")
		_, _ = b.stdout.Close(), b.stderr.Close()
	})
}

// TestLostWhileEnding: the end of the connection is no second signal for workers that are ending.
func TestLostWhileEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, nil)
		b.start()
		b.send(frame.Signal, []byte{2})
		_ = b.to.Close()
		time.Sleep(grace)
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{2}) {
			t.Errorf("signals %v, want 2", got)
		}
		time.Sleep(killMargin)
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{2, 9}) {
			t.Errorf("signals %v, want 2 and 9", got)
		}
		b.end <- frame.Outcome{Code: 137, Cause: frame.Died}
		b.wantDone("the connection to the launcher has ended")
		_, _ = b.stdout.Close(), b.stderr.Close()
	})
}

func TestEndings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, errors.New("no directory"))
		b.start()
		if text, _ := b.said(); !slices.Equal(text, []string{`7{"code":2,"cause":"other","text":"no directory"}`}) {
			t.Errorf("%q", text)
		}
		b.wantDone("")
		_ = b.to.Close()

		b = newBed(t, nil) // no job comes
		time.Sleep(startTimeout)
		b.wantDone("no sign of life")
		_ = b.to.Close()

		b = newBed(t, nil) // it is killed, and does not end
		b.start()
		b.send(frame.Kill, nil)
		b.send(frame.Kill, nil)
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{9}) {
			t.Errorf("signals %v, want 9", got)
		}
		time.Sleep(killTimeout)
		b.wantDone("the job did not end after SIGKILL")
		_, _, _ = b.to.Close(), b.stdout.Close(), b.stderr.Close()
		b.end <- frame.Outcome{}

		b = newBed(t, nil) // this host goes down
		b.start()
		b.signals <- syscall.SIGTERM
		if got := b.signalled(); !slices.Equal(got, []syscall.Signal{15}) {
			t.Errorf("signals %v, want 15", got)
		}
		b.end <- frame.Outcome{Code: 143, Cause: frame.Stopped, Signal: 15}
		time.Sleep(restTimeout) // somebody holds its output
		if text, _ := b.said(); !slices.Equal(text, []string{`7{"code":143,"cause":"stopped","signal":15}`}) {
			t.Errorf("%q", text)
		}
		b.wantDone("")
		_, _, _ = b.to.Close(), b.stdout.Close(), b.stderr.Close()
	})
}

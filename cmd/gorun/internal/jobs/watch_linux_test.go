package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/testing/testkit"
)

// openTerminal returns both ends of a terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		testkit.Cannot(t, "needs a terminal: %v", err)
	}
	late := time.AfterFunc(30*time.Second, func() { _ = ours.Close() }) // ends a read
	t.Cleanup(func() { late.Stop(); _ = ours.Close() })
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 60})
	}
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// TestWatch: the job is shown on another screen, again and again, until somebody presses q or ^C, or the job has ended. Then the terminal is
// what it was.
func TestWatch(t *testing.T) {
	for _, key := range []string{"q", "\x03", ""} {
		ours, theirs := openTerminal(t)
		before, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		job := status.Jobs(example())[0]
		var looks atomic.Int32
		done := make(chan error, 1)
		go func() {
			done <- Watch(t.Context(), theirs, theirs, func(context.Context) (*status.Job, error) {
				if looks.Add(1) > 2 && key == "" {
					return nil, errors.New("no such job")
				}
				return &job, nil
			})
		}()
		text := readUntil(t, ours, home)
		if key == "" { // a second later
			text += readUntil(t, ours, home)
		}
		text += readUntil(t, ours, clearRest)
		if !strings.HasPrefix(text, enterScreen) || !strings.Contains(text, "job train17: ./train.py") {
			t.Errorf("on the screen is %q", text)
		}
		if _, err := ours.WriteString(key); err != nil {
			t.Fatal(err)
		}
		readUntil(t, ours, leaveScreen)
		if err := <-done; err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if key == "" {
			readUntil(t, ours, "job train17 is gone: no such job")
		}
		after, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%q leaves the terminal %+v, it was %+v, %v", key, after, before, err)
		}
	}
	_, theirs := openTerminal(t)
	if err := Watch(t.Context(), theirs, theirs, func(context.Context) (*status.Job, error) { return nil, io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("no job: %v", err)
	}
}

// readUntil reads until a text has come.
func readUntil(t *testing.T, from io.Reader, want string) string {
	t.Helper()
	var text []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(text), want); {
		if _, err := from.Read(one); err != nil {
			t.Fatalf("%v after %q, want %q", err, text, want)
		}
		text = append(text, one[0])
	}
	return string(text)
}

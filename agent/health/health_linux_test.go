package health

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/launcher"
	_ "github.com/gorun/gorun/launcher/guard/reexec" // the test binary is also the guard of a command
	"github.com/gorun/gorun/launcher/spool"
)

func TestRunNamesTheFirstThatFails(t *testing.T) {
	var ran []string
	check := func(name string, err error) Check {
		return Check{name, func(context.Context) error { ran = append(ran, name); return err }}
	}
	err := Run(t.Context(), []Check{check("a", nil), check("b", syscall.ENOSPC), check("c", syscall.EIO)})
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Check != "b" || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got := strings.Join(ran, ""); got != "ab" {
		t.Errorf("ran %q, want ab", got)
	}
	if err := Run(t.Context(), []Check{check("a", nil)}); err != nil {
		t.Error(err)
	}
}

// TestRunDoesNotWait: a check that does not end, for example because a file system does not answer, has failed after Timeout.
func TestRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		defer close(hung)
		begun := time.Now()
		err := Run(t.Context(), []Check{{"disk", func(context.Context) error { <-hung; return nil }}})
		if took := time.Since(begun); err == nil || err.Error() != "health check disk: it takes more than 1m0s" || took > Timeout+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Run(ctx, []Check{{"disk", func(context.Context) error { <-hung; return nil }}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the end of its context: %v", err)
		}
	})
}

func command(t *testing.T, text string) (output string, err error) {
	t.Helper()
	var out bytes.Buffer
	s := spool.New()
	err = Command(text, launcher.Spec{Stdout: &out, Stderr: &out, Spool: s}, os.Environ()).Run(t.Context())
	s.Drain(spool.Timeouts{Still: time.Minute, Total: time.Minute}, nil)
	return out.String(), err
}

func TestCommand(t *testing.T) {
	t.Setenv("HEALTH_TEST", "as a node")
	for _, c := range []struct{ text, want, output string }{
		{`echo "$HEALTH_TEST"`, "", "[health check] as a node\n"},
		{"echo broken >&2; exit 3", "exit code 3: broken", "[health check] broken\n"},
		{"exit 4", "exit code 4", ""},
		{"kill -9 $$", "signal 9 (SIGKILL)", ""},
		{"no-such-command 2>/dev/null", "exit code 127", ""},
	} {
		output, err := command(t, c.text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || output != c.output {
			t.Errorf("%s: %q, output %q; want %q, %q", c.text, got, output, c.want, c.output)
		}
	}
}

// TestCommandIsVerbose: of a command that writes without end, the beginning is shown, and its last line is known.
func TestCommandIsVerbose(t *testing.T) {
	output, err := command(t, "yes | head -n 300000 >&2; yes | head -n 300000; echo broken >&2; exit 3")
	if err == nil || err.Error() != "exit code 3: broken" {
		t.Error(err)
	}
	if n := strings.Count(output, "[health check] (the rest is left out)\n"); n != 2 || len(output) > 3*maxOutput {
		t.Errorf("%d bytes of output, %d notes that some is left out", len(output), n)
	}
}

// TestCommandIsKilled: nothing is left of a command that takes too long.
func TestCommandIsKilled(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	name := t.TempDir() + "/pipe"
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Command("setsid sleep 1000 >"+name+" & exec sleep 1000 >"+name, launcher.Spec{Spool: spool.New()}, os.Environ()).Run(ctx)
	}()
	pipe, err := os.Open(name) // both have it open for writing
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n, err := pipe.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if err := Disk(dir, dir+"/not/there/yet").Run(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Disk("/proc").Run(t.Context()); err == nil {
		t.Error("files can be written in /proc")
	}
}

func TestDiskIsFull(t *testing.T) {
	testkit.SmallDisk(t, func(t *testing.T, dir string) {
		if err := Disk(dir).Run(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk: %v", err)
		}
	})
}

func TestFiles(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) }()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	if err := Files(2).Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := Files(20).Run(t.Context()); !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "needs 224 open files") {
		t.Errorf("20 workers with 200 files: %v", err)
	}
	if err := Files(2).Run(t.Context()); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestPort(t *testing.T) {
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.2", "localhost"} {
		if err := Port(addr).Run(t.Context()); err != nil {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if err := Port("192.0.2.1").Run(t.Context()); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("another machine's address: %v", err)
	}
}

package health

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/launcher/spool"
)

func check(t *testing.T, command string) (output string, err error) {
	t.Helper()
	var out bytes.Buffer
	s := spool.New()
	err = Check(t.Context(), command, launcher.Spec{Stdout: &out, Stderr: &out, Spool: s}, os.Environ())
	s.Drain(spool.Timeouts{Still: time.Minute, Total: time.Minute}, nil)
	return out.String(), err
}

func TestCheck(t *testing.T) {
	t.Setenv("HEALTH_TEST", "as a node")
	for _, c := range []struct{ command, want, output string }{
		{`echo "$HEALTH_TEST"`, "", "[health check] as a node\n"},
		{"echo broken >&2; exit 3", "exit code 3: broken", "[health check] broken\n"},
		{"exit 4", "exit code 4", ""},
		{"kill -9 $$", "signal 9 (SIGKILL)", ""},
		{"no-such-command 2>/dev/null", "exit code 127", ""},
	} {
		output, err := check(t, c.command)
		got := ""
		if failed, ok := errors.AsType[*Error](err); ok {
			got = failed.Err.Error()
		}
		if got != c.want || (err == nil) != (c.want == "") || output != c.output {
			t.Errorf("%s: %v, output %q; want %q, %q", c.command, err, output, c.want, c.output)
		}
	}
}

// TestCommandIsVerbose: of a command that writes without end, the beginning is shown, and its last line is known.
func TestCommandIsVerbose(t *testing.T) {
	output, err := check(t, "yes | head -n 300000 >&2; yes | head -n 300000; echo broken >&2; exit 3")
	if err == nil || !strings.HasSuffix(err.Error(), ": exit code 3: broken") {
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
	late := errors.New("it takes too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	spec := launcher.Spec{Argv: []string{"/bin/sh", "-c", "setsid sleep 1000 >" + name + " & exec sleep 1000 >" + name},
		Workers: []launcher.WorkerSpec{{Env: os.Environ()}}, Spool: spool.New()}
	go func() { ended <- run(ctx, spec) }()
	pipe, err := os.Open(name) // both have it open for writing
	if err != nil {
		t.Fatal(err)
	}
	cancel(late)
	if err := <-ended; !errors.Is(err, late) {
		t.Errorf("%v", err)
	}
	if n, err := pipe.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

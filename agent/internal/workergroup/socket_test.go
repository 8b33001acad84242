package workergroup_test

import (
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
)

// awaitWarnings waits until the log has so many lines, and returns them.
func (b *testbed) awaitWarnings(n int) []string {
	b.t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		got := slices.Clone(b.warnings)
		b.mu.Unlock()
		if len(got) >= n {
			return got
		}
		if time.Since(begun) > patience {
			b.t.Fatalf("the log has %q, want %d lines", got, n)
		}
	}
}

func (b *testbed) wantWarnings(want ...string) {
	b.t.Helper()
	got := b.awaitWarnings(len(want))
	for i, line := range got {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			b.t.Errorf("the log has %q, want %q", got, want)
			return
		}
	}
}

func dial(t *testing.T, w *fakeWorker) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", w.value("GORUN_ROUND_SOCKET"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestBadConnections: who misuses the socket of a worker is named in one line, and the other worker lives on.
func TestBadConnections(t *testing.T) {
	for name, test := range map[string]struct {
		misuse func(*testing.T, *fakeWorker)
		want   []string
		lives  bool // the worker that is misused
	}{
		"connects twice": {func(t *testing.T, w *fakeWorker) {
			w.connect(t)
			for range 3 {
				_, _ = dial(t, w).Read(make([]byte, 1)) // until it is closed
			}
		}, []string{"rank 10 (local rank 0): refuses a connection: the worker is connected already"}, true},
		"garbage": {func(t *testing.T, w *fakeWorker) {
			_, _ = dial(t, w).Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		}, []string{"rank 10 (local rank 0): takes part no more, since what it sends cannot be read: a document of 16 bytes: "}, false},
		"half a document": {func(t *testing.T, w *fakeWorker) {
			conn := dial(t, w)
			_, _ = conn.Write([]byte(`{"round"`))
			_ = conn.(*net.UnixConn).CloseWrite()
		}, []string{"rank 10 (local rank 0): takes part no more, since what it sends cannot be read: unexpected EOF"}, false},
		"a long line": {func(t *testing.T, w *fakeWorker) {
			_, _ = dial(t, w).Write(make([]byte, 2*env.MaxLine))
		}, []string{"rank 10 (local rank 0): takes part no more, since what it sends cannot be read: a document has more than 1048576 bytes"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTestbed(t, 2)
			gang, first := b.mustBegin(1)
			other := first[1].connect(t)
			test.misuse(t, first[0])
			b.wantWarnings(test.want...)
			gang.Revoke(syscall.SIGTERM, "", nil)
			if r := next(t, other); !r.Over {
				t.Errorf("told of %+v", r)
			}
			await(t, gang.Revoked())
			gang, second := b.mustBegin(2)
			if (second[0] == nil) != test.lives || second[1] != nil {
				t.Errorf("%v were started", second)
			}
			gang.Kill()
			for range gang.Exits() {
			}
			b.wantWarnings(test.want...)
		})
	}
}

// TestNeverReads: a worker that does not read its documents no longer takes part.
func TestNeverReads(t *testing.T) {
	b := newTestbed(t, 1)
	gang, first := b.mustBegin(1)
	if _, err := dial(t, first[0]).Read(make([]byte, 1)); err != nil { // now it is connected
		t.Fatal(err)
	}
	for round := 2; len(b.snapshot()) == 0; round++ {
		gang.Revoke(syscall.SIGTERM, "", []death.Death{{Rank: round, Cause: death.Unknown, Why: strings.Repeat("x", 1<<19)}})
		await(t, gang.Revoked())
		var fresh []*fakeWorker
		if gang, fresh = b.mustBegin(round); fresh[0] != nil {
			break
		}
		if round > 1000 {
			t.Fatal("a worker that never reads is told of 1000 rounds")
		}
	}
	b.wantWarnings("rank 10 (local rank 0): takes part no more, since it does not read what it is told")
	gang.Kill()
	for range gang.Exits() {
	}
}

func (b *testbed) snapshot() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.warnings)
}

// TestLateAnswer: an answer that was under way when its round was over harms nobody, and does not enter the next one.
func TestLateAnswer(t *testing.T) {
	b := newTestbed(t, 1)
	gang, first := b.mustBegin(1)
	conn := first[0].connect(t)
	for round := 2; round <= 3; round++ {
		gang.Revoke(syscall.SIGTERM, "", nil)
		await(t, gang.Revoked())
		gang, _ = b.mustBegin(round)
	}
	for _, round := range []int{2, 3, 2} { // the last one is wrong
		if err := conn.Enter(round); err != nil {
			t.Fatal(err)
		}
	}
	if x, _ := await(t, gang.Exits()); x.Signal() != syscall.SIGKILL {
		t.Errorf("exit %+v", x)
	}
	b.wantWarnings("rank 10 (local rank 0) is killed: it enters round 2, and has nothing to enter: it is in round 3")
}

// TestKilledIsNoSurvivor: a worker that is being killed does not live on.
func TestKilledIsNoSurvivor(t *testing.T) {
	b := newTestbed(t, 2)
	gang, first := b.mustBegin(1)
	conn := first[0].connect(t)
	first[1].connect(t)
	first[0].stubborn = true
	if err := conn.Enter(7); err != nil {
		t.Fatal(err)
	}
	b.wantWarnings("rank 10 (local rank 0) is killed: it enters round 7, and has nothing to enter: it is in round 1")
	gang.Revoke(syscall.SIGTERM, "", nil)
	first[0].end(death.Death{ExitCode: -int(syscall.SIGKILL), Stopped: true})
	await(t, gang.Revoked())
	gang, second := b.mustBegin(2)
	if second[0] == nil || second[1] != nil {
		t.Errorf("%v were started", second)
	}
	gang.Kill()
	for range gang.Exits() {
	}
}

// TestSuspendedWorkerIsNotLate: the time of a suspension does not count, also if the deadline passes meanwhile.
func TestSuspendedWorkerIsNotLate(t *testing.T) {
	b := newTestbed(t, 1)
	b.limit = 200 * time.Millisecond
	gang, first := b.mustBegin(1)
	conn := first[0].connect(t)
	gang.Revoke(syscall.SIGTERM, "", nil)
	await(t, gang.Revoked())
	gang, _ = b.mustBegin(2)
	gang.do(func() {
		time.Sleep(2 * b.limit) // only time can show that it does not count
		b.group.Extend(time.Minute)
	})
	if err := conn.Enter(2); err != nil {
		t.Fatal(err)
	}
	gang.Stop(syscall.SIGTERM)
	if x, _ := await(t, gang.Exits()); x.Signal() != syscall.SIGTERM {
		t.Errorf("exit %+v", x)
	}
	b.wantWarnings()
}

// TestLongPath: nobody could connect to a socket with such a path.
func TestLongPath(t *testing.T) {
	b := newTestbed(t, 1)
	b.dir = t.TempDir() + "/" + strings.Repeat("x", 100)
	if err := os.Mkdir(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.begin(1)
	if err == nil || !strings.Contains(err.Error(), "want at most 107: choose a shorter $TMPDIR") {
		t.Errorf("started: %v", err)
	}
}

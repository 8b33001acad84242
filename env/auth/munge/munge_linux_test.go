package munge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/mungetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a Server on loopback and returns its address.
func serve(t *testing.T, job, secret string, log func(string, ...any)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, job, secret, log)
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errors.New("out of time"))
	t.Cleanup(cancel)
	return ctx
}

func noWait(t *testing.T) func(string) {
	t.Helper()
	return func(reason string) { t.Errorf("waits: %s", reason) }
}

// TestAsk: many processes of one user get the secret, and one of another job does not.
func TestAsk(t *testing.T) {
	mungetest.Start(t)
	if err := Check(t.Context()); err != nil || !Available() {
		t.Fatalf("available: %t, %v", Available(), err)
	}
	secret := NewSecret()
	addr := serve(t, "17.0", secret, nil)
	var all sync.WaitGroup
	for member := range 20 {
		all.Go(func() {
			if got, err := Ask(within(t, 30*time.Second), addr, "17.0", strconv.Itoa(member), noWait(t)); err != nil || got != secret {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	all.Wait()
	_, err := Ask(within(t, 10*time.Second), addr, "18.0", "1", noWait(t))
	if refused, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(refused.Why, "another job of yours") {
		t.Errorf("the secret of another job: %v", err)
	}
}

// TestAskWaits: the server, and even its name, need not be there yet.
func TestAskWaits(t *testing.T) {
	mungetest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close() // nobody listens there for now
	secret, waits := NewSecret(), make(chan string, 1000)
	got := make(chan error, 1)
	go func() {
		text, err := Ask(within(t, 30*time.Second), addr, "17.0", "1", func(reason string) { waits <- reason })
		if err == nil && text != secret {
			err = fmt.Errorf("got %q", text)
		}
		got <- err
	}()
	if reason := <-waits; !strings.Contains(reason, addr) || !strings.Contains(reason, "connection refused") {
		t.Errorf("waits for: %s", reason)
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skipf("another process has taken the port: %v", err)
	}
	s := Serve(l, "17.0", secret, nil)
	defer func() { _ = s.Close() }()
	if err := <-got; err != nil {
		t.Error(err)
	}
	_, err = Ask(within(t, 200*time.Millisecond), "no-such-host.invalid:1", "17.0", "1", func(string) {})
	if err == nil || !strings.Contains(err.Error(), "out of time") || !strings.Contains(err.Error(), "no-such-host.invalid") {
		t.Errorf("a name that never means anything: %v", err)
	}
}

// TestNextJob: a process that begins the next job of the same name while the server of the last one still runs waits for the next server.
// The same process may ask twice, since the answer may be lost.
func TestNextJob(t *testing.T) {
	mungetest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, last, next := l.Addr().String(), NewSecret(), NewSecret()
	s := Serve(l, "17.0", last, nil)
	for range 2 {
		if got, err := Ask(within(t, 20*time.Second), addr, "17.0", "1", noWait(t)); err != nil || got != last {
			t.Fatalf("the first job: %q, %v", got, err)
		}
	}
	defer func(before string) { process = before }(process)
	process = NewSecret()
	if got, err := Ask(within(t, 20*time.Second), addr, "17.0", "2", noWait(t)); err != nil || got != last {
		t.Errorf("another node of the first job: %q, %v", got, err)
	}
	waits, got := make(chan string, 1000), make(chan string)
	go func() {
		text, err := Ask(within(t, 30*time.Second), addr, "17.0", "1", func(reason string) { waits <- reason })
		if err != nil {
			text = err.Error()
		}
		got <- text
	}()
	if reason := <-waits; !strings.Contains(reason, "the job before this one") {
		t.Errorf("waits for %s", reason)
	}
	_ = s.Close()
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Skipf("another process has taken the port: %v", err)
	}
	s = Serve(l, "17.0", next, nil)
	defer func() { _ = s.Close() }()
	if text := <-got; text != next {
		t.Errorf("the next job: %q", text)
	}
}

// TestStrangers: neither a credential of another user, nor one that has been used, nor other bytes get an answer; and an answer that does
// not belong to the question is not taken.
func TestStrangers(t *testing.T) {
	socket := mungetest.Start(t)
	secret := NewSecret()
	addr := serve(t, "17.0", secret, nil)
	ask := func(line string) string {
		t.Helper()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(conn, line); err != nil {
			return ""
		}
		reply, _ := io.ReadAll(conn)
		return strings.TrimSpace(string(reply))
	}
	mine := func() string {
		credential, err := encode(t.Context(), request+"\n17.0\n1\nprocess\nnonce")
		if err != nil {
			t.Fatal(err)
		}
		return credential
	}
	used := mine()
	if reply := ask(used + "\n"); !isCredential(reply) {
		t.Fatalf("a good question gets %q", reply)
	}
	good := mine()
	for name, c := range map[string]struct{ line, want string }{
		"used":          {used, refusedInvalid},
		"damaged":       {good[:len(good)-9] + "AAAAAAAA:", refusedInvalid},
		"no credential": {"hello", refusedInvalid},
		"an option":     {"MUNGE:--help:", refusedInvalid},
		"too long":      {prefix + strings.Repeat("A", maxCredential) + ":", ""},
		"no end":        {strings.Repeat("A", 10*maxCredential), ""},
	} {
		if got := ask(c.line + "\n"); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	for name, args := range map[string][]string{
		"another user's":                 {},
		"another user's, for this user":  {"--restrict-uid=0"},
		"another user's, for themselves": {"--restrict-uid=65534"},
	} {
		cmd := exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/munge", "--socket=" + socket}, args...)...)
		cmd.Stdin = strings.NewReader(request + "\n17.0\n1\nprocess\nnonce")
		credential, err := cmd.Output()
		if err != nil || os.Geteuid() != 0 {
			t.Logf("no credential of another user: %v", err)
			continue
		}
		if got := ask(string(credential)); got != refusedUser {
			t.Errorf("%s: got %q, want %q", name, got, refusedUser)
		}
	}
	for name, reply := range map[string]func() string{
		"the question": mine,
		"an old answer": func() string {
			c, err := encode(t.Context(), answer+"\n17.0\nnonce of another question\n"+secret)
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		"another service": func() string { return "SSH-2.0-OpenSSH_9.2" },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = readLine(conn)
			_, _ = io.WriteString(conn, reply()+"\n")
			_ = conn.Close()
		}()
		got, err := Ask(within(t, 20*time.Second), l.Addr().String(), "17.0", "1", noWait(t))
		if _, ok := errors.AsType[*RefusedError](err); !ok || got != "" {
			t.Errorf("%s as answer: %q, %v", name, got, err)
		}
		_ = l.Close()
	}
}

// TestNoDaemon: programs without a daemon are an error that names it.
func TestNoDaemon(t *testing.T) {
	t.Setenv("PATH", mungetest.Programs(t, filepath.Join(t.TempDir(), "nobody"))+":"+os.Getenv("PATH"))
	if err := Check(t.Context()); err == nil || !strings.Contains(err.Error(), "munge: Error: ") {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if Available() {
		t.Error("available without programs")
	}
}

func TestUIDIn(t *testing.T) {
	for metadata, want := range map[string]int{
		"UID:              root (0)\nLENGTH: 3": 0, "UID: ??? (1000)": 1000, "UID: 65534\n": 65534, "UID: (a) b (7)": 7,
		"": -1, "LENGTH: 3": -1, "UID: root": -1, "UID: root (0": -1, "UID: root (-1)": -1, "UID: x (7) y": -1,
	} {
		uid, ok := uidIn(metadata)
		if !ok {
			uid = -1
		}
		if uid != want {
			t.Errorf("%q: got %d, want %d", metadata, uid, want)
		}
	}
}

// FuzzUIDIn: what unmunge prints begins with what it knows, but its format is not ours.
func FuzzUIDIn(f *testing.F) {
	f.Add("UID: root (0)")
	f.Add("UID:(\nUID: 1")
	f.Fuzz(func(t *testing.T, metadata string) {
		if uid, ok := uidIn(metadata); ok && uid < 0 {
			t.Errorf("%q: %d", metadata, uid)
		}
	})
}

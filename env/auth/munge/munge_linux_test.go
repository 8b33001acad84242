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
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/testkit"
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
	clustertest.StartMUNGE(t)
	if err := Check(t.Context()); err != nil || !Available() {
		t.Fatalf("available: %t, %v", Available(), err)
	}
	secret := auth.NewSecret()
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
	clustertest.StartMUNGE(t)
	addr := testkit.ReservedAddr(t)
	secret, waits := auth.NewSecret(), make(chan string, 1000)
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
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
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
	clustertest.StartMUNGE(t)
	addr, last, next := testkit.ReservedAddr(t), auth.NewSecret(), auth.NewSecret()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, "17.0", last, nil)
	for range 2 {
		if got, err := Ask(within(t, 20*time.Second), addr, "17.0", "1", noWait(t)); err != nil || got != last {
			t.Fatalf("the first job: %q, %v", got, err)
		}
	}
	defer func(before string) { process = before }(process)
	process = auth.NewSecret()
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
		t.Fatal(err)
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
	socket := clustertest.StartMUNGE(t)
	secret := auth.NewSecret()
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

// TestCrowd: whatever strangers do, and however many of them do it, those who belong to the job get the secret; strangers get nothing, and
// take no memory.
func TestCrowd(t *testing.T) {
	clustertest.StartMUNGE(t)
	secret := auth.NewSecret()
	addr := serve(t, "17.0", secret, nil)
	credential := func(job string) string {
		c, err := encode(t.Context(), strings.Join([]string{request, job, "1", "another process", "nonce"}, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return c + "\n"
	}
	anothers := credential("18.0")
	if _, err := decode(t.Context(), strings.TrimSpace(anothers)); err != nil { // which uses it up
		t.Fatal(err)
	}
	before := heap()
	over := make(chan struct{})
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer close(over)
	// stranger connects again and again until the test is over, and does something with each connection.
	stranger := func(number int, does func(net.Conn)) {
		for range number {
			crowd.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					conn, err := net.Dial("tcp", addr)
					if err != nil {
						continue
					}
					stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
					_ = conn.SetDeadline(time.Now().Add(3 * time.Second)) // if it fails, so does what follows
					does(conn)
					stop()
					_ = conn.Close() // nothing of it matters
				}
			})
		}
	}
	says := func(line string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = io.WriteString(conn, line) // the server may have hung up
			if reply, _ := io.ReadAll(io.LimitReader(conn, maxCredential)); isCredential(strings.TrimSpace(string(reply))) {
				t.Errorf("a stranger gets an answer to %.40q", line)
			}
		}
	}
	var taken atomic.Int64 // the most bytes that the server has taken of one stranger
	stranger(300, func(conn net.Conn) { _, _ = io.ReadAll(conn) })
	stranger(30, func(conn net.Conn) { // one byte at a time
		for range 100 {
			if _, err := io.WriteString(conn, "M"); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	stranger(2, func(conn net.Conn) { // a gigabyte
		n, _ := io.Copy(conn, io.LimitReader(zeros{}, 1<<30))
		for was := taken.Load(); n > was && !taken.CompareAndSwap(was, n); was = taken.Load() {
		}
	})
	stranger(4, says(prefix+strings.Repeat("A", 200)+":\n"))
	stranger(2, says("GET / HTTP/1.1\r\n\r\n"))
	stranger(2, says(anothers))
	var members sync.WaitGroup
	for member := range 8 {
		members.Go(func() {
			if got, err := Ask(within(t, 50*time.Second), addr, "17.0", strconv.Itoa(member), func(string) {}); err != nil || got != secret {
				t.Errorf("member %d: %q, %v", member, got, err)
			}
		})
	}
	members.Wait()
	if n := taken.Load(); n > 64<<20 { // the kernel's buffers
		t.Errorf("the server takes %d bytes of one stranger", n)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("strangers take %d bytes of memory", grown)
	}
}

// TestDroppedWhileWaiting: no program runs for a connection that has been dropped while others were decoded.
func TestDroppedWhileWaiting(t *testing.T) {
	clustertest.StartMUNGE(t)
	program, err := exec.LookPath("unmunge")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hold, runs := filepath.Join(dir, "hold"), filepath.Join(dir, "runs")
	script := fmt.Sprintf("#!/bin/sh\necho run >>%s\nwhile [ -e %s ]; do sleep 0.02; done\nexec %s \"$@\"\n", runs, hold, program)
	if err := errors.Join(os.WriteFile(hold, nil, 0o600), os.WriteFile(filepath.Join(dir, "unmunge"), []byte(script), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit, more = 8, 12
	s := serveWith(l, "17.0", auth.NewSecret(), admission.Config{Limit: limit})
	defer func() { _ = s.Close() }()
	ended := make(chan struct{}, decoders+more)
	connect := func() {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "MUNGE:AAAA:\n"); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.ReadAll(conn)
			_ = conn.Close() // the server has closed it
			ended <- struct{}{}
		}()
	}
	ran := func() int {
		text, _ := os.ReadFile(runs) // it comes with the first
		return strings.Count(string(text), "run")
	}
	for range decoders {
		connect()
	}
	for deadline := time.Now().Add(20 * time.Second); ran() < decoders && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	for range more {
		connect()
	}
	for range decoders + more - limit { // the first are dropped
		<-ended
	}
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	for range limit {
		<-ended
	}
	if n := ran(); n > decoders+limit {
		t.Errorf("%d programs have run for %d connections, of which %d were dropped", n, decoders+more, decoders+more-limit)
	}
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// TestNoDaemon: programs without a daemon are an error that names it.
func TestNoDaemon(t *testing.T) {
	t.Setenv("PATH", clustertest.MUNGEPrograms(t, filepath.Join(t.TempDir(), "nobody"))+":"+os.Getenv("PATH"))
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

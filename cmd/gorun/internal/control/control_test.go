package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer returns a server that listens, and a client of it. The directory of sockets is the test's own.
func startServer(t *testing.T, c Config) (*Server, *Client, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if c.Recent == nil {
		c.Recent = launcher.NewRecent(1)
	}
	s := New(c)
	t.Cleanup(s.Close)
	if err := s.Listen("job/1"); err != nil {
		t.Fatal(err)
	}
	paths, err := Sockets()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "gorun", fmt.Sprintf("%d-job_1.sock", os.Getpid())); len(paths) == 0 || paths[len(paths)-1] != want {
		for _, p := range paths {
			if p == want {
				return s, At(want), want
			}
		}
		t.Fatalf("sockets %q, want %s", paths, want)
	}
	return s, At(paths[len(paths)-1]), paths[len(paths)-1]
}

func node() *status.Node {
	return &status.Node{Version: status.Version, Job: "job/1", Host: "here", Pid: os.Getpid(), State: status.Running,
		Workers: []status.Worker{{Rank: 4, Pid: 7, State: status.WorkerRunning, ProgressFile: "file"}}}
}

// TestStatus: people get the newest snapshot, with what the node waits for, and what its workers do.
func TestStatus(t *testing.T) {
	asked := 0
	s, c, path := startServer(t, Config{Ask: func(_ context.Context, file string) *progress.Status {
		asked++
		return &progress.Status{Activity: "reads " + file, Collectives: &progress.Collectives{PerSecond: 2}}
	}})
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "the job is just starting") {
		t.Errorf("without a snapshot: %v", err)
	}
	s.Publish(node())
	s.SetWaiting("round 1")
	for range 3 {
		n, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.Waiting == nil || n.Waiting.For != "round 1" || n.Workers[0].Doing != "reads file" || n.Workers[0].Collectives.PerSecond != 2 || n.At.IsZero() {
			t.Errorf("%+v", n)
		}
	}
	if asked > 2 {
		t.Errorf("three people at a time have the workers asked %d times", asked)
	}
	s.SetWaiting("")
	other := node()
	other.Version = 2
	s.Publish(other)
	_, err := c.Status(t.Context())
	if _, ok := errors.AsType[*status.VersionError](err); !ok {
		t.Errorf("of another version: %v", err)
	}
	s.Close()
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
	if _, err := c.Status(t.Context()); !HasEnded(err) {
		t.Errorf("after the end: %v", err)
	}
}

// TestCommands: a command gets the answer of the agent, or the reason why there is none.
func TestCommands(t *testing.T) {
	s, c, _ := startServer(t, Config{})
	var agents sync.WaitGroup
	agents.Go(func() {
		for range 4 {
			command := <-s.Commands()
			switch command.Kind {
			case agent.CommandScale:
				command.Answer <- agent.Answer{Err: fmt.Errorf("nodes %v", command.Nodes)}
			case agent.CommandDrain:
				command.Answer <- agent.Answer{Err: fmt.Errorf("force is %t\nhere", command.Force)}
			case agent.CommandStacks:
				command.Answer <- agent.Answer{Stacks: []agent.WorkerStacks{{Rank: 1, Doing: "sleeps"}}, Files: "dir/*"}
			default:
				command.Answer <- agent.Answer{}
			}
		}
	})
	if _, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandStop, Force: false}); err != nil {
		t.Error(err)
	}
	if _, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandDrain, Force: true}); err == nil || err.Error() != "force is true; here" {
		t.Error(err)
	}
	if r, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandStacks, Force: false}); err != nil || len(r.Stacks) != 1 || r.Stacks[0].Doing != "sleeps" || r.Files != "dir/*" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandScale, Nodes: [2]int{2, 5}}); err == nil || err.Error() != "nodes [2 5]" {
		t.Error(err)
	}
	agents.Wait()
	if _, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandScale, Nodes: [2]int{5, 2}}); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Error(err)
	}
	if _, err := c.Command(t.Context(), agent.Command{Kind: "dance", Force: false}); err == nil || !strings.Contains(err.Error(), "another version of gorun") {
		t.Error(err)
	}
	failed := make(chan error)
	go func() { // nobody takes it, and then the job ends
		_, err := c.Command(t.Context(), agent.Command{Kind: agent.CommandStop, Force: false})
		failed <- err
	}()
	time.Sleep(20 * time.Millisecond)
	s.Close()
	if err := <-failed; err == nil {
		t.Error("a command was carried out by nobody")
	}
}

// TestLogs: people get the last lines of workers, in whole lines, and those that come while they follow.
func TestLogs(t *testing.T) {
	lines := launcher.NewRecent(2)
	s, c, _ := startServer(t, Config{Recent: lines})
	n := node()
	n.Workers = append(n.Workers, status.Worker{Rank: 5, LocalRank: 1, Pid: 8, State: status.WorkerRunning})
	s.Publish(n)
	lines.Add(0, launcher.Stdout, []byte("one\ntw"))
	lines.Add(0, launcher.Stderr, []byte("bad \x1b[31mnews\r\n"))
	lines.Add(0, launcher.Stdout, []byte("o\nthree"))
	lines.Add(1, launcher.Stdout, []byte("other\n"))
	var got []string
	collect := func(l Line) { got = append(got, fmt.Sprintf("%d %s %s", l.Rank, l.Stream, l.Text)) }
	want := func(list ...string) {
		t.Helper()
		if strings.Join(got, "\n") != strings.Join(list, "\n") {
			t.Errorf("lines %q, want %q", got, list)
		}
		got = nil
	}
	if err := c.Logs(t.Context(), -1, false, collect); err != nil {
		t.Error(err)
	}
	want("4 stdout one", "4 stderr bad news", "4 stdout two", "4 stdout three", "5 stdout other")
	if err := c.Logs(t.Context(), 5, false, collect); err != nil {
		t.Error(err)
	}
	want("5 stdout other")

	seen, ended := make(chan Line), make(chan error)
	go func() {
		ended <- c.Logs(t.Context(), 4, true, func(l Line) {
			if !l.Unfinished {
				seen <- l
			}
		})
	}()
	for _, text := range []string{"one", "bad news", "two"} {
		if l := <-seen; l.Text != text {
			t.Errorf("%q, want %q", l.Text, text)
		}
	}
	lines.Add(0, launcher.Stdout, []byte(" and four\n"))
	if l := <-seen; l.Text != "three and four" {
		t.Errorf("%q follows", l.Text)
	}
	lines.Add(0, launcher.Stdout, []byte("the end"))
	go s.Close()
	if l := <-seen; l.Text != "the end" {
		t.Errorf("%q at the end", l.Text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	long := launcher.NewRecent(1)
	for i := range 3 * launcher.RecentSize / 1000 {
		long.Add(0, 1, []byte(strings.Repeat("x", 990)+fmt.Sprintf("%09d\n", i)))
	}
	var r lineReader
	out := string(r.read(nil, long, Line{}, true))
	first, rest, _ := strings.Cut(out, "\n")
	if !strings.Contains(first, `"missed":true`) || strings.Contains(rest, "missed") || strings.Count(out, strings.Repeat("x", 990)+"0") != strings.Count(out, "\n") {
		t.Errorf("after lines that are not kept comes %.80s", first)
	}
}

// TestLinesOfTerminals: a line is what a terminal shows of it, however its bytes come; who wants unfinished lines gets the newest state.
func TestLinesOfTerminals(t *testing.T) {
	bar := func(n int) string { return strings.Repeat(fmt.Sprintf("\r%070d\x1b[K", 7), n/74) + "\r8%" }
	for _, c := range []struct {
		name   string
		pieces []string // what is written between two looks
		want   []string // "~" before an unfinished line
	}{
		{"bar", []string{"\r1%\r2%", "\r3%", "\n"}, []string{"~2%", "~3%", "3%"}},
		{"return at the end", []string{"1%\r", "2%\r", "done\r\n"}, []string{"~1%", "~2%", "done"}},
		{"line ends of DOS", []string{"one\r\ntwo\r", "\n"}, []string{"one", "~two", "two"}},
		{"question", []string{"name? ", "", "me\nok\n"}, []string{"~name? ", "name? me", "ok"}},
		{"colors", []string{"\x1b[31m1%\x1b[0m\x1b[K\r", "\x1b[?25h\n"}, []string{"~1%", ""}},
		{"long bar", []string{bar(3 * maxLine / 2), "\n"}, []string{"~8%", "8%"}},
		{"bar whose beginning is not kept", []string{"0%" + bar(launcher.RecentSize), "\r9%\n"}, []string{"~8%", "9%"}},
		{"line whose beginning is not kept", []string{strings.Repeat("x", 2*launcher.RecentSize), "x\r\ny\n"}, []string{"y"}},
	} {
		written, r, got := launcher.NewRecent(1), lineReader{unfinished: true}, []string(nil)
		for _, text := range c.pieces {
			for ; len(text) > 4096; text = text[4096:] {
				written.Add(0, launcher.Stdout, []byte(text[:4096]))
			}
			written.Add(0, launcher.Stdout, []byte(text))
			for line := range strings.Lines(string(r.read(nil, written, Line{}, false))) {
				l, err := parseLine([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				if l.Unfinished {
					l.Text = "~" + l.Text
				}
				got = append(got, l.Text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %.200q, want %q", c.name, got, c.want)
		}
	}
}

// TestStrangers: what no client sends does no harm, and the next one is answered. Those that send nothing do not keep others out.
func TestStrangers(t *testing.T) {
	s, c, path := startServer(t, Config{})
	s.Publish(node())
	for _, text := range []string{
		"", "nonsense\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /status HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<16) + "\r\n\r\n",
		"POST /stop HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", "GET /logs?rank=x HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /drain?force=x HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(text)) // the server may have closed it
		if text != "" {
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			answer := make([]byte, 200)
			n, _ := conn.Read(answer)
			if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 4") {
				t.Errorf("%.40q is answered %q", text, answer[:n])
			}
		}
		_ = conn.Close()
	}
	for range 2 * maxConns {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("beside many who say nothing: %v", err)
	}
}

// TestDirectories: a socket is in a directory that is the user's own, and nowhere else.
func TestDirectories(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, "relative", filepath.Join(open, "none")} {
		t.Setenv("XDG_RUNTIME_DIR", dir)
		for _, got := range directories() {
			if strings.HasPrefix(got, dir) {
				t.Errorf("%s is used", got)
			}
		}
	}
	own := t.TempDir()
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(own, "gorun")); err != nil {
		t.Fatal(err)
	}
	if err := prepare(filepath.Join(own, "gorun")); err == nil {
		t.Error("a link is used")
	}
}

// TestUnusable: if agents cannot have sockets, people are told, and not that there are none.
func TestUnusable(t *testing.T) {
	dir := func(mode os.FileMode) string {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	own, open := dir(0o700), dir(0o777)
	for _, c := range []struct {
		dirs []string
		want string // beginning of the error
	}{
		{[]string{filepath.Join(open, "jobs")}, open + " can be changed by other users: have it removed, or set XDG_RUNTIME_DIR to a directory of yours"},
		{[]string{filepath.Join(own, "gorun"), filepath.Join(open, "jobs")}, ""}, // agents use the first
		{[]string{filepath.Join(own, "none", "jobs")}, ""},
	} {
		list, err := filesIn(c.dirs, suffix)
		if len(list) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %q, %v, want %q", c.dirs, list, err, c.want)
		}
	}
}

// TestNextRemoves: an agent that begins removes the socket of one that was killed.
func TestNextRemoves(t *testing.T) {
	_, _, path := startServer(t, Config{})
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(path), fileName(ended.Process.Pid, "left", suffix))
	l, err := listenAt(left)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	next := New(Config{Recent: launcher.NewRecent(1)})
	defer next.Close()
	if err := next.Listen("next"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(left); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s is left", left)
		}
	}
}

// TestDead: the socket of an agent that was killed is removed, and that of one that lives is not.
func TestDead(t *testing.T) {
	_, _, path := startServer(t, Config{})
	left := filepath.Join(filepath.Dir(path), "1-left.sock")
	l, err := listenAt(left)
	if err != nil {
		t.Fatal(err)
	}
	if RemoveIfDead(left) {
		t.Error("the socket of an agent that lives was removed")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !RemoveIfDead(left) || RemoveIfDead(path) {
		t.Error("who has ended is not known")
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("the socket of an agent that has ended is left")
	}
}

// FuzzReply: what an agent answers is understood or refused, and has no control characters.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"error":"no"}`))
	f.Add([]byte(`{"stacks":[{"Rank":1,"Doing":"sleeps"}],"files":"x"}`))
	f.Add([]byte(`{"rank":1,"local_rank":0,"stream":"stdout","text":"x\u001b[2J"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseReply(text); err != nil && strings.ContainsAny(err.Error(), "\x1b\r") {
			t.Errorf("%q", err)
		}
		if line, err := parseLine(text); err == nil && (line.Rank < 0 || strings.ContainsAny(line.Text, "\x1b\r\n")) {
			t.Errorf("%+v", line)
		}
	})
}

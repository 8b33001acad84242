package comm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A testAgent plays gorun's agent with --on-failure=replace to worker processes, which are survivors: it starts them, says that a round is
// over, and begins the next one. It does so when the test says it, and not by itself.
type testAgent struct {
	t         *testing.T
	net       string   // how ranks reach each other: shm, tcp, tls, mixed or far
	environ   []string // of a worker, besides
	dir       string
	hosts     *hosttest.Network // nil: all are on this one
	hostCount int
	round     int
	died      []death.Death
	workers   []*testWorker // by rank; nil: none lives
}

// A testWorker is a survivor, as its agent sees it.
type testWorker struct {
	t       *testing.T
	rank    int
	cmd     *exec.Cmd
	stdin   io.Writer
	results chan result
	stderr  lockedBuffer
	socket  *testSocket
	joined  bool // it has been told to call Init
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newTestAgent starts size survivors in round 1.
func newTestAgent(t *testing.T, network string, size int, environ ...string) *testAgent {
	t.Helper()
	testkit.Once(t)
	dir, err := os.MkdirTemp("", "comm") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &testAgent{t: t, net: network, environ: environ, dir: dir}
	switch network {
	case "mixed":
		a.connectHosts(2, 0)
	case "hosts":
		a.connectHosts(size, 0)
	case "far":
		a.connectHosts(size, farDelay)
	}
	a.next(size)
	return a
}

// farDelay is how long a packet of a far network takes to a host, or from it.
const farDelay = 3 * time.Millisecond

// connectHosts puts the ranks on n hosts.
func (a *testAgent) connectHosts(n int, delay time.Duration) {
	a.hosts, a.hostCount = hosttest.New(a.t, n), n
	for i := range n {
		if delay > 0 {
			a.hosts.Delay(i, delay)
		}
	}
}

// host returns the host of a rank.
func (a *testAgent) host(rank int) int {
	if a.hosts == nil {
		return 0
	}
	return rank % a.hostCount
}

// next begins a round of size ranks, in which survivors have the ranks that they had: those that are missing are started.
func (a *testAgent) next(size int) {
	a.t.Helper()
	a.begin(size, func(int) bool { return true })
}

// begin is next, but it starts only those of the missing for which starts returns true. The test starts the others.
func (a *testAgent) begin(size int, starts func(rank int) bool) {
	a.t.Helper()
	a.round++
	master, port := "127.0.0.1", 0
	if a.hosts != nil {
		master, port = a.hosts.Host(0).Addr, 20_000+a.round // nobody else is there
	} else {
		port = testkit.ReservedPort(a.t)
	}
	for len(a.workers) < size {
		a.workers = append(a.workers, nil)
	}
	for rank, w := range a.workers {
		if rank >= size {
			if w != nil {
				w.end()
			}
			continue
		}
		here, local := 0, 0
		for r := range size {
			if a.host(r) == a.host(rank) {
				if r == rank {
					local = here
				}
				here++
			}
		}
		of := env.Worker{
			Rank: rank, WorldSize: size, LocalRank: local, LocalWorldSize: here, GroupRank: a.host(rank), GroupWorldSize: max(2, a.hostCount),
			MasterAddr: master, MasterPort: port, Round: a.round, Token: fmt.Sprintf("the-secret-of-round-number-%d", a.round), MaxRestarts: 1000,
			RestartCount: a.round - 1, TLS: a.net == "tls",
		}
		switch {
		case w != nil:
			w.socket.send(env.Round{Round: a.round, Env: variables(of.Environ()), Died: a.died})
		case starts(rank):
			a.workers[rank] = a.start(of)
		}
	}
	a.workers, a.died = a.workers[:size], nil
}

func variables(environ []string) map[string]string {
	set := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if name != "GORUN_ROUND_SOCKET" {
			set[name] = value
		}
	}
	return set
}

// start starts a survivor.
func (a *testAgent) start(of env.Worker) *testWorker {
	a.t.Helper()
	w := &testWorker{t: a.t, rank: of.Rank, results: make(chan result, 100)}
	of.RoundSocket = filepath.Join(a.dir, fmt.Sprintf("%d.%d", of.Rank, a.round))
	var err error
	if w.socket, err = listenTestSocket(of.RoundSocket, env.Round{Round: of.Round, Env: variables(of.Environ())}); err != nil {
		a.t.Fatal(err)
	}
	w.cmd = exec.CommandContext(a.t.Context(), os.Args[0])
	w.cmd.Env = slices.Concat(os.Environ(), []string{asSurvivor + "=" + a.net}, of.Environ(), a.environ)
	w.cmd.Stderr = &w.stderr
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		a.t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if a.hosts != nil {
		a.hosts.Host(a.host(of.Rank)).Do(func() { err = w.cmd.Start() })
	} else {
		err = w.cmd.Start()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	go func() {
		defer close(w.results)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r result
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				r = result{Text: "it says " + lines.Text()}
			}
			w.results <- r
		}
	}()
	a.t.Cleanup(w.end)
	return w
}

// kill kills a rank, and says nothing to the others.
func (a *testAgent) kill(rank int) {
	a.t.Helper()
	w := a.workers[rank]
	w.end()
	a.workers[rank] = nil
	a.died = append(a.died, death.Death{
		Rank: rank, LocalRank: rank, Host: hostname(a.t), Pid: w.cmd.Process.Pid, ExitCode: -9, Stderr: []string{"last words"},
	})
}

// end kills the worker, if it has not ended.
func (w *testWorker) end() {
	if w.cmd.ProcessState == nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
	w.socket.close()
}

// over says to all that the round is over, because of those that have died.
func (a *testAgent) over() { a.overBecause("") }

// overBecause says to all that the round is over, and why.
func (a *testAgent) overBecause(why string) {
	for _, w := range a.workers {
		if w != nil {
			w.socket.send(env.Round{Round: a.round, Over: true, Why: why, Died: a.died})
		}
	}
}

// lose kills ranks, as a fault does, and the agent notices.
func (a *testAgent) lose(ranks ...int) {
	a.t.Helper()
	for _, r := range ranks {
		a.kill(r)
	}
	a.over()
}

// all lets all workers do something and waits for the results, which must not be errors.
func (a *testAgent) all(command ...string) {
	a.t.Helper()
	a.begun(command...)
	for rank, r := range a.results() {
		if r.Error != "" {
			a.t.Fatalf("round %d, rank %d: %s: %s", a.round, rank, strings.Join(command, " "), r.Error)
		}
	}
}

// begun lets all workers begin something.
func (a *testAgent) begun(command ...string) {
	a.t.Helper()
	for _, w := range a.workers {
		if w != nil {
			w.do(command...)
		}
	}
}

// join lets all workers join the world of the round, and use it.
func (a *testAgent) join() {
	a.t.Helper()
	for _, w := range a.workers {
		w.join()
	}
	for rank, r := range a.results() {
		if r.Error != "" {
			a.t.Fatalf("round %d, rank %d: %s: %s", a.round, rank, r.Command, r.Error)
		}
	}
	a.all("check")
}

// join lets the worker begin to join the world of the round.
func (w *testWorker) join() {
	w.t.Helper()
	if w.joined {
		w.do("rejoin")
	} else {
		w.do("init")
	}
	w.joined = true
}

// entered waits until the worker has entered a round.
func (w *testWorker) entered(round int) {
	w.t.Helper()
	w.says(func(m env.Message) bool { return m.Round == round && m.Revoke == "" })
}

// revokes waits until the worker revokes the round, and returns why.
func (w *testWorker) revokes(round int) string {
	w.t.Helper()
	return w.says(func(m env.Message) bool { return m.Round == round && m.Revoke != "" }).Revoke
}

// says waits for a message of the worker.
func (w *testWorker) says(is func(env.Message) bool) env.Message {
	w.t.Helper()
	for limit := time.After(testLimit); ; {
		select {
		case m, ok := <-w.socket.messages:
			if !ok {
				w.t.Fatalf("rank %d is gone: %s", w.rank, w.stderr.String())
			}
			if is(m) {
				return m
			}
		case <-limit:
			w.t.Fatalf("rank %d does not say it: %s", w.rank, w.stderr.String())
		}
	}
}

// results waits for the result of every worker that lives.
func (a *testAgent) results() map[int]result {
	a.t.Helper()
	all := map[int]result{}
	for rank, w := range a.workers {
		if w != nil {
			all[rank] = w.result()
		}
	}
	return all
}

// do lets the worker begin something.
func (w *testWorker) do(command ...string) {
	w.t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(w.stdin, "%s\n", line); err != nil {
		w.t.Fatalf("rank %d: %v: %s", w.rank, err, w.stderr.String())
	}
}

// testLimit is when a test gives up.
const testLimit = time.Minute

// result waits for the next result.
func (w *testWorker) result() result {
	w.t.Helper()
	select {
	case r, ok := <-w.results:
		if !ok {
			_ = w.cmd.Wait()
			w.t.Fatalf("rank %d has ended with %v: %s", w.rank, w.cmd.ProcessState, w.stderr.String())
		}
		return r
	case <-time.After(testLimit):
		_ = w.cmd.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		w.t.Fatalf("rank %d does not answer: %s", w.rank, w.stderr.String())
		return result{}
	}
}

// A testSocket is the socket of one worker, by which it hears of rounds.
type testSocket struct {
	listener net.Listener
	messages chan env.Message

	mu   sync.Mutex
	conn net.Conn
	said []env.Round // since the last round began
}

func listenTestSocket(path string, first env.Round) (*testSocket, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	s := &testSocket{listener: ln, said: []env.Round{first}, messages: make(chan env.Message, 1000)}
	go s.serve()
	return s, nil
}

func (s *testSocket) serve() {
	defer close(s.messages)
	conn, err := s.listener.Accept()
	if err != nil {
		return
	}
	go func() { // one connection at a time, as agents do
		for {
			other, err := s.listener.Accept()
			if err != nil {
				return
			}
			_ = other.Close()
		}
	}()
	s.mu.Lock()
	s.conn = conn
	for _, r := range s.said {
		_, _ = conn.Write(env.Encode(r))
	}
	s.mu.Unlock()
	for reader := env.NewReader[env.Message](conn); ; {
		m, err := reader.Read()
		if err != nil {
			return
		}
		s.messages <- m
	}
}

func (s *testSocket) send(r env.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Over {
		s.said = nil
	}
	if s.said = append(s.said, r); s.conn != nil {
		_, _ = s.conn.Write(env.Encode(r))
	}
}

func (s *testSocket) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

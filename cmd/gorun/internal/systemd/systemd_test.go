package systemd

import (
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/status"
)

// TestNotifications: systemd learns that the workers run, how the job is, and that it ends, each once.
func TestNotifications(t *testing.T) {
	var k notifications
	n := &status.Node{State: status.Joining, Why: "the job begins", MaxRestarts: 3}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "STATUS=joining: the job begins"},
		{func() {}, ""},
		{func() {
			n.State, n.Round = status.Running, &status.Round{ID: 1, Nodes: 2, WorldSize: 4}
			n.Workers = []status.Worker{{State: status.WorkerRunning}, {State: status.WorkerRunning}}
		}, "READY=1\nSTATUS=running: round 1 of 2 nodes and 4 ranks, 2 of 2 workers of this node run, 0 of 3 restarts used"},
		{func() { n.Workers[0].State = status.WorkerSucceeded },
			"STATUS=running: round 1 of 2 nodes and 4 ranks, 1 of 2 workers of this node run, 0 of 3 restarts used"},
		{func() { n.Events = append(n.Events, status.Event{Kind: status.KindInterrupted}) }, "STOPPING=1"},
		{func() {}, ""},
	} {
		step.change()
		if got := k.of(n); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	if got := k.end(); got != "" {
		t.Errorf("it says twice that it stops: %q", got)
	}
}

// TestNotify: the messages arrive at systemd's socket, with those for its watchdog.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "")
	next := func(unlike string) string {
		for {
			buffer := make([]byte, 1000)
			_ = socket.SetReadDeadline(time.Now().Add(10 * time.Second))
			size, err := socket.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(buffer[:size]); text != unlike {
				return text
			}
		}
	}
	n := Notify(slog.New(slog.NewTextHandler(io.Discard, nil)))
	if got := next(""); got != "WATCHDOG=1" {
		t.Errorf("the first message is %q", got)
	}
	n.Publish(&status.Node{State: status.Running, Round: &status.Round{ID: 1}})
	if got := next("WATCHDOG=1"); !strings.HasPrefix(got, "READY=1\nSTATUS=running") {
		t.Errorf("after the start: %q", got)
	}
	n.End()
	if got := next("WATCHDOG=1"); got != "STOPPING=1" {
		t.Errorf("at the end: %q", got)
	}
	environ := WithoutVariables([]string{"A=1", "NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=1", "WATCHDOG_PID=1", "NOTIFY=2"})
	if !slices.Equal(environ, []string{"A=1", "NOTIFY=2"}) {
		t.Errorf("workers get %q", environ)
	}
}

// TestNotifyStuck: nobody waits for a systemd that does not read.
func TestNotifyStuck(t *testing.T) {
	n := &Notifier{latest: make(chan *status.Node, 1), ended: make(chan struct{}), done: make(chan struct{})}
	forever := make(chan struct{})
	defer close(forever)
	go n.run(0, func(string) error { <-forever; return nil }, slog.New(slog.NewTextHandler(io.Discard, nil)))
	for range 100 {
		n.Publish(&status.Node{State: status.Running})
	}
	n.End()
}

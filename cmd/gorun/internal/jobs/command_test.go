package jobs

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
)

// answering returns an agent that takes every command.
func answering(t *testing.T) Agent {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return Agent{Client: control.At(path)}
}

// closing returns an agent that closes every connection, and ends after a while if that is not zero.
func closing(t *testing.T, after time.Duration) Agent {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if after > 0 {
		time.AfterFunc(after, func() { _ = l.Close() })
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return Agent{Client: control.At(path)}
}

// TestStopEnds: an agent that ends before it has answered has been stopped, since another one has. One that only does not answer is an
// error, and so is one that ends before it carries out another command.
func TestStopEnds(t *testing.T) {
	stop := agent.Command{Kind: agent.CommandStop}
	for name, c := range map[string]struct {
		agents  []Agent
		command agent.Command
		failed  []bool
	}{
		"ends":          {[]Agent{answering(t), closing(t, 200*time.Millisecond)}, stop, []bool{false, false}},
		"does not":      {[]Agent{answering(t), closing(t, 0)}, stop, []bool{false, true}},
		"nobody stops":  {[]Agent{closing(t, 100*time.Millisecond), closing(t, 100*time.Millisecond)}, stop, []bool{true, true}},
		"other command": {[]Agent{answering(t), closing(t, 100*time.Millisecond)}, agent.Command{Kind: agent.CommandStacks}, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, r := range Command(t.Context(), c.agents, c.command) {
				if (r.Err != nil) != c.failed[i] {
					t.Errorf("agent %d: %v", i, r.Err)
				}
			}
		})
	}
}

// TestAskForOne: without etcd every agent takes ten seconds to refuse, which 64 of them do at the same time. An agent that does not answer holds
// up nobody, and only one is asked if it does what it should.
func TestAskForOne(t *testing.T) {
	refusal := errors.New("refused")
	for _, c := range []struct {
		agents int
		takes  func(i int) (time.Duration, error)
		took   time.Duration
		asked  int
		by     int // the agent that does it; negative: none
	}{
		{64, func(int) (time.Duration, error) { return 10 * time.Second, refusal }, 11 * time.Second, 64, -1},
		{3, func(int) (time.Duration, error) { return time.Millisecond, nil }, time.Millisecond, 1, 0},
		{3, func(int) (time.Duration, error) { return time.Millisecond, refusal }, 2 * time.Millisecond, 3, -1},
		{3, func(i int) (time.Duration, error) { return time.Hour >> (20 * i), nil }, soon + time.Hour>>40, 3, 2},
		{1, func(int) (time.Duration, error) { return 10 * time.Second, refusal }, 10 * time.Second, 1, -1},
		{0, nil, 0, 0, -1},
	} {
		synctest.Test(t, func(t *testing.T) {
			results, begun := make([]Result, c.agents), time.Now()
			var asked atomic.Int32
			got := askForOne(results, func(i int) {
				asked.Add(1)
				takes, err := c.takes(i)
				time.Sleep(takes)
				results[i].Node.Pid, results[i].Err = i, err
			})
			by := -1
			if len(got) > 0 && got[0].Err == nil {
				by = got[0].Node.Pid
			}
			if took := time.Since(begun); took != c.took || int(asked.Load()) != c.asked || by != c.by || by < 0 && len(got) != c.agents {
				t.Errorf("%d agents: after %v, %d asked, %d results, done by %d: want %+v", c.agents, took, asked.Load(), len(got), by, c)
			}
			time.Sleep(2 * time.Hour) // until all have answered
		})
	}
}

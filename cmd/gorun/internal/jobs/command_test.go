package jobs

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/control"
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

package guard

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWordsOfAGuard: what a guard says as it dies reaches the agent, and does not wait for whoever reads stderr.
func TestWordsOfAGuard(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	g := &Guard{stderr: memfd(null)}
	defer func() { _ = g.stderr.Close() }()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "echo one >&2; echo two >&2; yes | head -c 1000000 >&2")
	cmd.Stderr = g.stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if words := g.Stderr(); !strings.HasPrefix(words, "one; two; y; y") || len(words) > 2*maxStderr {
		t.Errorf("%d bytes: %.100q", len(words), words)
	}
	none := &Guard{}
	if words := none.Stderr(); words != "" {
		t.Errorf("%q", words)
	}
}

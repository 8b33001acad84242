package bootstrap

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/manager"
)

// TestMungeHangsHere: if the MUNGE of this machine does not answer, that is no fault of rank 0.
func TestMungeHangsHere(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"munge", "unmunge"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	p := place{
		rank: 1, size: 2, master: "node0:29500", meet: "the store", began: time.Now(),
		task: &manager.Task{Manager: &manager.Manager{Munge: true}, ID: "1", Hosts: []string{"node0", "node1"}, Rank: 1, Node: 1},
	}
	waits := startWaiting(slog.New(slog.DiscardHandler), time.Hour)
	defer waits.end()
	end, err := (&Config{}).negotiate(ctx, &p, waits)
	end()
	_, missing := errors.AsType[*MissingError](err)
	if !errors.Is(err, context.DeadlineExceeded) || missing || !strings.Contains(err.Error(), "MUNGE, which does not work on node1") {
		t.Errorf("got %v, a rank is missing: %t", err, missing)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
)

// beforeMain names a file that gets what this process has started before main.
const beforeMain = "GORUN_TEST_BEFORE_MAIN"

// Package main is initialised after all others.
func init() {
	file := os.Getenv(beforeMain)
	if file == "" {
		return
	}
	children := 0
	for _, p := range proc.All() {
		if p.Parent == os.Getpid() {
			children++
		}
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, "%d children", children), 0o600); err != nil {
		panic(err)
	}
}

// TestGorunBeginsInMain: what gorun does it does in main; a guard does not come as far, nor does it initialise etcd.
func TestGorunBeginsInMain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		args    []string
		code    int
		before  string   // main; empty: it does not come as far
		without []string // packages that are not initialised
	}{
		{name: "guard", args: []string{"gorun-guard"}, // its agent has died
			without: []string{"net", "google.golang.org/grpc", "go.etcd.io/etcd/server/v3/etcdserver"}},
		{name: "job", args: []string{"gorun", "true"}, before: "0 children"},
		{name: "text", args: []string{"gorun", "--version"}, before: "0 children"},
		{name: "worker", args: []string{"gorun", "bench-worker", "{}"}, code: 2, before: "0 children"}, // nobody says its rank
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trace, before := trace(t, tt.args, tt.code)
			if before != tt.before {
				t.Errorf("before main there are %q, want %q", before, tt.before)
			}
			for _, p := range tt.without {
				if strings.Contains(trace, "init "+p+" @") {
					t.Errorf("%s has been initialised", p)
				}
			}
		})
	}
}

// trace is what this binary says of packages that it initialises, and what it has started before main.
func trace(t *testing.T, args []string, code int) (inits, before string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	file := filepath.Join(t.TempDir(), "before")
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args, cmd.ExtraFiles, cmd.Stderr = args, []*os.File{testkit.HungUp(t)}, &stderr
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", raceExitsAtOnce, beforeMain+"="+file)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v: %s", err, &stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return stderr.String(), string(text)
}

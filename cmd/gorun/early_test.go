package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/fdtest"
)

// TestEarly: a guard, and a job of one node, end before etcd's packages are initialised.
func TestEarly(t *testing.T) {
	t.Parallel()
	etcd := []string{"google.golang.org/grpc", "go.etcd.io/etcd/server/v3/embed"}
	for _, tt := range []struct {
		name      string
		args      []string
		coverDir  string
		code      int
		early, no []string // packages that are initialised, and that are not
	}{
		{name: "guard", args: []string{"gorun-guard"}, code: 1, no: []string{"net", etcd[0], etcd[1]}}, // its agent has died
		{name: "job", args: []string{"gorun", "true"}, no: etcd},
		{name: "text", args: []string{"gorun", "--version"}, early: []string{"net"}, no: etcd},
		{name: "worker", args: []string{"gorun", "bench-worker", "{}"}, code: 2, early: []string{"net"}, no: etcd}, // nobody says its rank
		{name: "main", args: []string{"gorun", "--version"}, coverDir: t.TempDir(), early: etcd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trace := initTrace(t, tt.args, tt.coverDir, tt.code)
			for _, p := range tt.early {
				if !strings.Contains(trace, "init "+p+" @") {
					t.Errorf("%s has not been initialised", p)
				}
			}
			for _, p := range tt.no {
				if strings.Contains(trace, "init "+p+" @") {
					t.Errorf("%s has been initialised", p)
				}
			}
		})
	}
}

// initTrace is what this binary, and the guard that it starts, say of packages that they initialise.
func initTrace(t *testing.T, args []string, coverDir string, code int) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	toNobody := fdtest.HungUp(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args, cmd.ExtraFiles, cmd.Stderr = args, []*os.File{toNobody}, &stderr
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", raceExitsAtOnce, "GOCOVERDIR="+coverDir)
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return stderr.String()
}

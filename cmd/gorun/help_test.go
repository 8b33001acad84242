package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestHelpExamples does what the help shows first, in its order, with programs that use package comm and a node0 that other machines
// could reach.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir, token := t.TempDir(), false
	master := testkit.ReservedPort(t)
	endpoint := testkit.ReservedPort(t)
	node0, ok := ownAddress()
	if !ok {
		node0 = "127.0.0.1"
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "train"), "../../docs/examples/batch")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// A Python program cannot link comm; it becomes one that does.
	script := "import os, sys\nassert sys.argv[1:] == ['--epochs', '3']\nos.execv('./train', ['./train'])\n"
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}

	// shell returns a command line of the help, as it is to be run here.
	shell := func(line string) *exec.Cmd {
		line = strings.ReplaceAll(line, "--rdzv-endpoint=node0", "--rdzv-endpoint="+node0+":"+strconv.Itoa(endpoint))
		line = strings.ReplaceAll(line, "--master-addr=node0", "--master-port="+strconv.Itoa(master)+" --master-addr="+node0)
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PET_RDZV_CONF=last_call_timeout=1", "OMP_NUM_THREADS=1", raceExitsAtOnce)
		return cmd
	}
	number := regexp.MustCompile(`--(nproc-per-node|nnodes)=(\d+)`)
	node := regexp.MustCompile(`--node-rank=(\d)`)
	lines := examplesOf(ctx, t)
	for i, line := range lines {
		if strings.Contains(line, "openssl") {
			if _, err := exec.LookPath("openssl"); err != nil {
				line = strings.ReplaceAll(line, "openssl rand -hex 32", "echo 0123456789abcdef0123456789abcdef")
			}
			token = true
		}
		if rank := node.FindStringSubmatch(line); rank != nil && rank[1] != "0" {
			continue // it has run beside node 0
		}
		both := []*exec.Cmd{shell(line)}
		switch {
		case node.MatchString(line):
			if i+1 == len(lines) || lines[i+1] != strings.Replace(line, "--node-rank=0", "--node-rank=1", 1) {
				t.Fatalf("the help does not show what node 1 runs beside %s", line)
			}
			both = append(both, shell(lines[i+1]))
		case strings.Contains(line, "--nnodes="):
			both = append(both, shell(line))
		}
		if len(both) > 1 && !token {
			t.Error("the help shows several nodes before it shows how to make their token")
		}
		printed := make(chan string)
		for _, cmd := range both {
			go func() {
				out, err := cmd.CombinedOutput()
				if err != nil {
					out = append(out, err.Error()...)
				}
				printed <- string(out)
			}()
		}
		all := ""
		for range both {
			all += <-printed
		}
		want := 0
		if m := number.FindStringSubmatch(line); m != nil {
			want, _ = strconv.Atoi(m[2])
		}
		if got := len(regexp.MustCompile(`(?m)^\[\d\] rank \d sent `).FindAllString(all, -1)); got != want {
			t.Errorf("%s\n%d ranks say that they have sent, want %d:\n%s", line, got, want, all)
		}
	}
	if len(lines) < 4 {
		t.Errorf("the help begins with %d command lines", len(lines))
	}
}

// examplesOf returns the command lines with which the help begins.
func examplesOf(ctx context.Context, t *testing.T) (lines []string) {
	t.Helper()
	out, err := exec.CommandContext(ctx, "gorun", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, examples, found := strings.Cut(string(out), "\n\nExamples:\n")
	if before, _, _ := strings.Cut(string(out), "Examples:"); !found || strings.Contains(before, "Usage:") {
		t.Fatalf("the help does not begin with examples:\n%s", out)
	}
	examples, _, _ = strings.Cut(examples, "\n\n")
	for line := range strings.Lines(examples) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

package main_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

var update = flag.Bool("update", false, "write testdata/abi.txt")

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

func gorun(t *testing.T) string {
	t.Helper()
	path, err := testkit.Gorun(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compile compiles a program of testdata with the library in prefix.
func compile(t *testing.T, prefix, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	lib := filepath.Join(prefix, "lib")
	run(t, exec.CommandContext(t.Context(), "gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"+filepath.Join(prefix, "include"),
		"-o", program, filepath.Join("testdata", name+".c"), "-L"+lib, "-lgorun", "-Wl,-rpath,"+lib))
	return program
}

// TestPrograms runs a program for each family of calls under gorun.
func TestPrograms(t *testing.T) {
	prefix, gorun := testkit.Library(t, "../.."), gorun(t)
	round2 := []string{"[0] round 2\n", "[1] round 2\n", "[2] round 2\n"}
	for _, c := range []struct {
		name, flags string
		code        int
		want        []string // in its output
	}{
		{"collectives", "--nproc-per-node=3", 0, nil},
		{"collectives", "--nproc-per-node=2 --env=GORUN_COMM_CONNECTIONS=2", 0, nil},
		{"messages", "--nproc-per-node=3", 0, nil},
		{"customstore", "--nproc-per-node=3", 0, nil},
		{"errors", "--nproc-per-node=3", 3, []string{"[0] comm: Barrier #3: ", "[2] comm: Barrier #3: ", "rank 1 (pid "}},
		{"interrupt", "--nproc-per-node=2", 0, []string{"[0] interrupted\n", "[1] interrupted\n"}},
		{"ops", "--nproc-per-node=4", 0, nil},
		{"ops", "--nproc-per-node=3 --env=TRANSPORT=tcp", 0, nil},
		{"rejoin", "--nproc-per-node=3 --on-failure=replace --max-restarts=1", 0, round2},
		{"rejoin", "--nproc-per-node=3 --on-failure=replace --max-restarts=1 --env=ROUND_STORE=1", 0, round2},
		{"state", "--nproc-per-node=3 --on-failure=replace --max-restarts=1", 0, round2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields(c.flags), "--log-dir="+t.TempDir(), "--no-python", compile(t, prefix, c.name))
			cmd := exec.CommandContext(t.Context(), gorun, args...)
			cmd.Env = append(os.Environ(), "STORE="+t.TempDir())
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, out)
			}
			for _, line := range c.want {
				if !bytes.Contains(out, []byte(line)) {
					t.Errorf("no %q in\n%s", line, out)
				}
			}
		})
	}
}

// TestFork: a forked child that outlives its parent does not keep the parent's death from the other ranks.
func TestFork(t *testing.T) {
	program := compile(t, testkit.Library(t, "../.."), "fork")
	for _, settings := range []string{"shm", "tcp", "tcp GORUN_COMM_CONNECTIONS=3"} {
		transport, more, _ := strings.Cut(settings, " ")
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			input, keep := testkit.Pipe(t)
			method := "file://" + filepath.Join(t.TempDir(), "meet")
			var ranks [2]*exec.Cmd
			var out [2]bytes.Buffer
			for i := range ranks {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ranks[i] = exec.CommandContext(ctx, program, method, transport)
				ranks[i].Env = append(os.Environ(), fmt.Sprint("RANK=", i), more)
				ranks[i].Stdin, ranks[i].Stdout, ranks[i].Stderr = input, &out[i], &out[i]
				if err := ranks[i].Start(); err != nil {
					t.Fatal(err)
				}
			}
			if err := ranks[0].Wait(); err != nil {
				t.Errorf("rank 0: %v\n%s", err, &out[0])
			}
			_ = keep.Close() // the child ends
			_ = ranks[1].Wait()
			if state := ranks[1].ProcessState; state.String() != "signal: killed" {
				t.Errorf("rank 1: %v\n%s", state, &out[1])
			}
		})
	}
}

// TestABI: testdata/abi.txt is what gorun.h declares, without comments. If what is there changes, and not only more is
// added, GORUN_ABI and the library's name change. The library has these functions and no other symbols.
func TestABI(t *testing.T) {
	prefix := testkit.Library(t, "../..")
	text, err := os.ReadFile("gorun.h")
	if err != nil {
		t.Fatal(err)
	}
	header := regexp.MustCompile(`(?s)[ \t]*/\*.*?\*/|\n\s*(\n)`).ReplaceAllString(string(text), "$1")
	header = strings.TrimLeft(header, "\n")
	golden := filepath.Join("testdata", "abi.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(header), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || header != string(want) {
		t.Errorf("gorun.h has changed (%v): go test ./comm/c -run TestABI -update writes %s", err, golden)
	}
	var declared, defined []string
	for _, name := range regexp.MustCompile(`\b(gorun_\w+)\(`).FindAllStringSubmatch(header, -1) {
		declared = append(declared, name[1])
	}
	symbols := run(t, exec.CommandContext(t.Context(), "nm", "-D", "--defined-only", filepath.Join(prefix, "lib", "libgorun.so.1")))
	for line := range strings.Lines(symbols) {
		fields := strings.Fields(line)
		defined = append(defined, fields[len(fields)-1])
	}
	slices.Sort(declared)
	slices.Sort(defined)
	if !slices.Equal(declared, defined) {
		t.Errorf("gorun.h declares\n%s\nand the library has\n%s", declared, defined)
	}
}

// TestPage runs the commands of docs/c.md that are marked "console library", with its program.
func TestPage(t *testing.T) {
	prefix, gorun := testkit.Library(t, "../.."), gorun(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "c.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, part := range []string{"lib", "include"} { // as scripts/library would make them
		if err := os.MkdirAll(filepath.Join(dir, "build"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(prefix, part), filepath.Join(dir, "build", part)); err != nil {
			t.Fatal(err)
		}
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```(c|console library)\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		if block[1] == "c" {
			if err := os.WriteFile(filepath.Join(dir, "mean.c"), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, entry := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			command, want, _ := strings.Cut(entry, "\n")
			if commands++; strings.HasPrefix(command, "scripts/library ") {
				continue
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(gorun)+":"+os.Getenv("PATH"))
			var stderr strings.Builder // a rank that waits for long says so there
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			lines := slices.Sorted(strings.Lines(string(out)))
			if got := strings.Join(lines, ""); err != nil || got != want {
				t.Errorf("%s: %v, got\n%swant\n%sstderr:\n%s", command, err, got, want, &stderr)
			}
		}
	}
	if commands != 3 {
		t.Errorf("docs/c.md has %d commands", commands)
	}
}

// TestNoCgo: package comm needs no C compiler.
func TestNoCgo(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if and .CgoFiles (not .Standard)}}{{.ImportPath}}{{end}}", "../...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out := strings.TrimSpace(run(t, list)); out != "github.com/gorun/gorun/comm/c" {
		t.Errorf("these packages have C code: %s", out)
	}
}

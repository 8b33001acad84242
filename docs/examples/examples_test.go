// Package examples_test runs every example as its head comment says, and every console block of the documentation,
// and compares what they print.
package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

const root = "../.."

// gorun is the directory of a freshly built gorun.
var gorun string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gorun-examples-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		// These are the flags with which testkit.Gorun is built: go install must not build another gorun while the other pages run
		// this one.
		flags, err := exec.Command("go", "env", "GOFLAGS").Output()
		if err == nil {
			err = errors.Join(os.Setenv("GOFLAGS", strings.TrimSpace(string(flags))+" -ldflags=-w -buildvcs=false"), os.Setenv("CGO_ENABLED", "0"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "go env GOFLAGS:", err)
			return 1
		}
		if _, err := testkit.Gorun(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		gorun = dir
		return testkit.OwnSettings(m).Run()
	}())
}

// sh runs a command line of the documentation in the root of the repository and returns its standard output, line
// by line, sorted: workers print when they get to it.
func sh(t *testing.T, command string) []string {
	t.Helper()
	return shIn(t, root, command)
}

// shIn is sh in another folder, with more variables.
func shIn(t *testing.T, dir, command string, variables ...string) []string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+gorun+":"+os.Getenv("PATH"), "GOBIN="+gorun, "TMPDIR="+gorun)
	c.Env = append(c.Env, variables...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, stderr.String())
	} else {
		t.Logf("%s: on stderr\n%s", command, stderr.String()) // it is shown if the test fails
	}
	return sortedLines(string(out))
}

func sortedLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	slices.Sort(lines)
	return lines
}

func compare(t *testing.T, command string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\nprinted\n\t%s\nwant\n\t%s", command, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// A shown command is one that a page or an example shows, with what it prints on standard output, in any order of lines.
type shown struct{ page, command, output string }

// TestCommandsPrintWhatIsShown runs the console blocks of the documentation, in which a line "$ command" is followed by what it prints, and
// the command in each example's head comment, whose output is in expected.txt. The commands of a page may need those before them. What several
// pages show is run once.
func TestCommandsPrintWhatIsShown(t *testing.T) {
	var pages []string
	commands, seen := make(map[string][]shown), make(map[[2]string]bool)
	for _, s := range append(examples(t), commandsOfBlocks(t)...) {
		if key := [2]string{s.command, s.output}; !seen[key] {
			seen[key] = true
			commands[s.page] = append(commands[s.page], s)
			pages = append(pages, s.page)
		}
	}
	slices.Sort(pages)
	for _, page := range slices.Compact(pages) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, s := range commands[page] {
				if _, err := exec.LookPath("python3"); err != nil && strings.Contains(s.command, ".py") {
					testkit.Cannot(t, "%s: needs python3", s.command)
				}
				compare(t, s.command, sh(t, s.command), sortedLines(s.output))
			}
		})
	}
}

// examples returns the commands of all examples.
func examples(t *testing.T) (list []shown) {
	t.Helper()
	usage := regexp.MustCompile(`(?m)^//\t(gorun .*)$`)
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) == 0 {
		t.Fatalf("found no examples: %v", err)
	}
	for _, main := range mains {
		src, err := os.ReadFile(main)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(filepath.Dir(main), "expected.txt"))
		if err != nil {
			t.Fatal(err)
		}
		command := usage.FindSubmatch(src)
		if command == nil {
			t.Fatalf("%s does not say how to run it", main)
		}
		list = append(list, shown{filepath.Dir(main), string(command[1]), string(want)})
	}
	return list
}

// commandsOfBlocks returns the commands of all console blocks.
func commandsOfBlocks(t *testing.T) (list []shown) {
	t.Helper()
	for _, b := range blocks(t, "console") {
		for _, entry := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			command, output, _ := strings.Cut(entry, "\n")
			list = append(list, shown{b.page, command, output})
		}
	}
	return list
}

// TestElasticTrainComesToTheSameWeights: whatever the number of ranks, and whoever dies, all digits are those of one rank alone.
func TestElasticTrainComesToTheSameWeights(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "elastic_train")
	sh(t, "go build -o "+program+" ./docs/examples/elastic_train")
	alone := sh(t, "gorun --nproc-per-node=1 "+program+" --exact")
	if len(alone) != 5 {
		t.Fatalf("alone it prints %q", alone)
	}
	for _, c := range []struct{ flags, kills string }{
		{"--nproc-per-node=4", ""},
		{"--nproc-per-node=2 --max-restarts=1 --on-failure=replace", "1@0"},
		{"--nproc-per-node=3 --max-restarts=4 --max-restart-backoff=0 --on-failure=replace", "1@0,0@57,2@58,0@99"},
	} {
		command := fmt.Sprintf("gorun %s %s --exact --kill=%s", c.flags, program, c.kills)
		compare(t, command, sh(t, command), alone)
	}
}

// A ```go block is the body of a function that has ctx and returns an error. All of them are files of one package.
func TestGoBlocksOfTheDocumentationCompile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, err := filepath.Abs(filepath.Join(root, "docs", "examples", "block"))
	if err != nil {
		t.Fatal(err)
	}
	virtual := make(map[string]string) // what go build takes for a file in that folder
	add := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		virtual[filepath.Join(folder, name)] = file
	}
	for i, b := range blocks(t, "go") {
		imports := "\"context\"\n\"github.com/gorun/gorun/comm\"\n"
		for _, path := range []string{"errors", "log", "github.com/gorun/gorun/comm/elastic"} {
			if strings.Contains(b.text, filepath.Base(path)+".") {
				imports += fmt.Sprintf("%q\n", path)
			}
		}
		add(fmt.Sprintf("block%d_of_%s.go", i, strings.TrimSuffix(b.page, ".md")),
			fmt.Sprintf("package block\n\nimport (\n%s)\n\nfunc block%d(ctx context.Context) error {\n%s}\n", imports, i, b.text))
	}
	replace, err := json.Marshal(map[string]any{"Replace": virtual})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./docs/examples/block")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A block is a fenced block of a page of documentation.
type block struct{ page, text string }

// blocks returns all blocks in a language; there is at least one.
func blocks(t *testing.T, language string) (found []block) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```")
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllSubmatch(text, -1) {
			found = append(found, block{filepath.Base(page), string(m[1])})
		}
	}
	if len(found) == 0 {
		t.Fatalf("found no %s block; is the README still there?", language)
	}
	return found
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// played are the scenarios that TestDrill plays under -short, with the policy that it plays them with: one for each kind of fault.
var played = map[string]string{
	"worker-kill": "replace", "worker-hang": "restart", "worker-oom": "replace", "agent-kill": "replace", "leader-kill": "replace",
	"node-partition-one-way": "replace", "etcd-kill": "restart", "disk-full": "restart", "two-at-once": "replace",
	"spare-swap": "replace", "scale-down": "replace", "scale-up": "replace",
}

// TestDrill plays each scenario, with real agents, etcds and workers, in a drill of its own. They run beside each other, as they
// mostly wait.
func TestDrill(t *testing.T) {
	d := driller{gorun: buildGorun(t)} // which starts dozens of processes
	head, rows := documentedDrills(t)
	var documented, all []string
	for _, row := range rows {
		fields := strings.Fields(row)
		name, policy := fields[0], fields[1]
		documented = append(documented, name+" "+policy)
		if testing.Short() && played[name] != policy { // they take up to 15 seconds each
			continue
		}
		t.Run(name+"/"+policy, func(t *testing.T) {
			t.Parallel()
			d.scenario(t, name, policy, head+"\n"+row)
		})
	}
	for _, name := range d.list(t) {
		all = append(all, name+" restart", name+" replace")
	}
	for name, policy := range played {
		if !slices.Contains(all, name+" "+policy) {
			t.Errorf("there is no scenario %s with %s", name, policy)
		}
	}
	if !slices.Equal(documented, all) {
		t.Errorf("docs/results/drills.md has the results of %q, where gorun drill would play %q", documented, all)
	}
	for name, test := range map[string]func(*testing.T){
		"json": d.json, "random": d.random,
		"program": d.program, "program that lives on": d.survivors, "program that ends slowly": d.slowEnd,
		"fails": d.fails, "interrupted": d.interrupted, "killed": d.killed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// A driller has a gorun to drill with.
type driller struct{ gorun string }

// command is gorun drill, with a place of its own for temporary files.
func (d driller) command(t *testing.T, args ...string) (c *exec.Cmd, stderr *bytes.Buffer, temp string) {
	t.Helper()
	temp, err := os.MkdirTemp("", "d") //nolint:usetesting // shorter than t's: the path of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer func() { _ = os.RemoveAll(temp) }()
		left, err := os.ReadDir(temp)
		if err != nil || len(left) > 0 {
			t.Errorf("of temporary files there are left: %v, %v", left, err)
		}
		if list := processesOf(t, temp); list != nil {
			t.Errorf("processes are left: %v", list)
		}
	})
	stderr = new(bytes.Buffer)
	c = exec.CommandContext(t.Context(), d.gorun, append([]string{"drill"}, args...)...)
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	c.Stderr = stderr
	return c, stderr, temp
}

// processesOf finds those that are at home below temp.
func processesOf(t *testing.T, temp string) (list []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range links {
		if cwd, err := os.Readlink(name); err == nil && strings.HasPrefix(cwd, temp) {
			list = append(list, filepath.Dir(name))
		}
	}
	return list
}

// documentedDrills returns the lines of the table in docs/results/drills.md: its head, and one for each scenario.
func documentedDrills(t *testing.T) (head string, rows []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "results", "drills.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "```text\nSCENARIO ")
	table, _, _ = strings.Cut(table, "```")
	lines := strings.Split(normal("SCENARIO "+table), "\n")
	if len(lines) < 2 {
		t.Fatal("docs/results/drills.md has no table")
	}
	return lines[0], lines[1:]
}

// list returns the names of all scenarios.
func (d driller) list(t *testing.T) (names []string) {
	t.Helper()
	c, stderr, _ := d.command(t, "--list")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(line, " ")
		names = append(names, name)
	}
	return names
}

// scenario plays one scenario. Its table is the one in docs/results/drills.md, but for the times.
func (d driller) scenario(t *testing.T, name, policy, want string) {
	c, stderr, _ := d.command(t, "-v", "--on-failure="+policy, name)
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	got := normal(string(out))
	_, noIP := exec.LookPath("ip")
	lacks := noIP != nil || os.Getuid() != 0 || strings.Contains(got, "cannot bound the memory") || strings.Contains(got, "cannot mount")
	if strings.Contains(got, " - - - - skipped - ") && lacks {
		testkit.Cannot(t, "%s", got)
	}
	if got != want {
		t.Errorf("the table is\n%s\nwhere docs/results/drills.md has\n%s\n%s", got, want, stderr)
	}
}

// normal is a table without the widths of its columns, and without times.
func normal(table string) string {
	table = regexp.MustCompile(`[0-9]+( \([0-9]+\))? ms`).ReplaceAllString(table, "N ms")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(table, " "))
}

// random: of every fault it is told how long it took until all computed again.
func (d driller) random(t *testing.T) {
	c, stderr, _ := d.command(t, "--random", "--on-failure=replace", "--seed=7", "--minutes=0.05", "--nproc-per-node=1")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if strings.Contains(string(out), " skipped ") {
		return // as in all
	}
	if !regexp.MustCompile(`(?m)^random +replace +[0-9]+ random faults, seed 7 +- +- +[0-9]+ ms +yes +none$`).Match(out) {
		t.Errorf("the table is\n%s", out)
	}
	if !regexp.MustCompile(`(?m)^random, replace: node[0-9], over [0-9]+ faults: descriptors [0-9]+ to [0-9]+, `).MatchString(stderr.String()) {
		t.Errorf("stderr says nothing of descriptors:\n%s", stderr)
	}
	if !regexp.MustCompile(`(?m)^random, replace: 1: .*: computing together again after [0-9.]+ s$`).MatchString(stderr.String()) {
		t.Errorf("stderr is\n%s", stderr)
	}
}

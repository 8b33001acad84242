package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDrill plays each scenario, with real agents, etcds and workers, in a drill of its own. They run beside each other, as they
// mostly wait.
func TestDrill(t *testing.T) {
	d := driller{gorun: filepath.Join(t.TempDir(), "gorun")}
	// Without the race detector: a drill starts dozens of processes.
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", d.gorun, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	head, rows := documentedDrills(t)
	var documented []string
	for _, row := range rows {
		name, _, _ := strings.Cut(row, " ")
		documented = append(documented, name)
		if testing.Short() && name != "worker-kill" { // the others take up to 15 seconds each
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.scenario(t, name, head+"\n"+row)
		})
	}
	if all := d.list(t); !slices.Equal(documented, all) {
		t.Errorf("docs/drills.md has the results of %q, where gorun drill would play %q", documented, all)
	}
	if testing.Short() {
		return
	}
	for name, test := range map[string]func(*testing.T){
		"json": d.json, "random": d.random, "fails": d.fails, "interrupted": d.interrupted, "killed": d.killed,
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
	temp = t.TempDir()
	t.Cleanup(func() {
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

// documentedDrills returns the lines of the table in docs/drills.md: its head, and one for each scenario.
func documentedDrills(t *testing.T) (head string, rows []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "drills.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "```text\nSCENARIO ")
	table, _, _ = strings.Cut(table, "```")
	lines := strings.Split(normal("SCENARIO "+table), "\n")
	if len(lines) < 2 {
		t.Fatal("docs/drills.md has no table")
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

// scenario plays one scenario. Its table is the one in docs/drills.md, but for the times.
func (d driller) scenario(t *testing.T, name, want string) {
	c, stderr, _ := d.command(t, "-v", name)
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	got := normal(string(out))
	if _, err := exec.LookPath("ip"); strings.Contains(got, " - - - skipped: ") && (err != nil || os.Getuid() != 0) {
		t.Skip(got)
	}
	if got != want {
		t.Errorf("the table is\n%s\nwhere docs/drills.md has\n%s\n%s", got, want, stderr)
	}
}

// normal is a table without the widths of its columns, and without times.
func normal(table string) string {
	table = regexp.MustCompile(`[0-9]+ ms`).ReplaceAllString(table, "N ms")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(table, " "))
}

// json is for programs; the number of nodes and workers is up to the user.
func (d driller) json(t *testing.T) {
	c, stderr, _ := d.command(t, "--json", "--nodes=2", "--nproc-per-node=1", "worker-kill", "scale-down")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	var results []struct {
		Scenario, Fault, Why, Logs string
		Held, Skipped              bool
		Noticed                    float64 `json:"noticed_ms"`
		Running                    float64 `json:"running_ms"`
		Leftovers                  struct{ Processes, Ports, Files int }
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&results); err != nil || len(results) != 2 {
		t.Fatalf("%v, %d results of %s", err, len(results), out)
	}
	for i, fault := range []string{"SIGKILL to a worker of node 1", "SIGTERM to the agent of node 1"} {
		r := results[i]
		if r.Fault != fault || !r.Held || r.Skipped || r.Why+r.Logs != "" || r.Noticed <= 0 || r.Running <= r.Noticed {
			t.Errorf("result %d is %+v\n%s", i, r, stderr)
		}
	}
}

// random: of every fault it is told how long it took until all computed again.
func (d driller) random(t *testing.T) {
	c, stderr, _ := d.command(t, "--random", "--seed=7", "--minutes=0.05", "--nproc-per-node=1")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if strings.Contains(string(out), " skipped: ") {
		return // as in all
	}
	if !regexp.MustCompile(`(?m)^random +[0-9]+ random faults, seed 7 +- +[0-9]+ ms +yes +none$`).Match(out) {
		t.Errorf("the table is\n%s", out)
	}
	if !regexp.MustCompile(`(?m)^random: 1: .*: computing together again after [0-9.]+ s$`).MatchString(stderr.String()) {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// fails: a drill that does not hold is told of, and what the agents have said is kept.
func (d driller) fails(t *testing.T) {
	c, stderr, temp := d.command(t, "--timeout=1ms", "agent-kill")
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !regexp.MustCompile(`(?m)^agent-kill +- +- +- +NO: .*: not finished within 1ms: no worker has started +none$`).Match(out) {
		t.Errorf("the table is\n%s", out)
	}
	logs := regexp.MustCompile(`(?m)^agent-kill: logs are in (.*)$`).FindSubmatch(stderr.Bytes())
	if logs == nil || !strings.Contains(stderr.String(), "\n  etcd0.log:\n    ") || !strings.HasSuffix(stderr.String(), "\ngorun: 1 of 1 drills did not hold\n") {
		t.Fatalf("stderr is\n%s", stderr)
	}
	if _, err := os.Stat(filepath.Join(string(logs[1]), "etcd0.log")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(temp, filepath.Base(filepath.Dir(string(logs[1]))))); err != nil {
		t.Error(err)
	}
}

// interrupted: nothing is left, not even of an agent that is suspended.
func (d driller) interrupted(t *testing.T) {
	c, _, _ := d.command(t, "-v", "agent-stop")
	d.end(t, c, syscall.SIGTERM)
	if code := c.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d, want %d", code, 128+int(syscall.SIGTERM))
	}
}

// killed: no process is left, and no file.
func (d driller) killed(t *testing.T) {
	c, _, temp := d.command(t, "-v", "agent-stop")
	d.end(t, c, syscall.SIGKILL)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // nobody tells
		left, err := os.ReadDir(temp)
		if err == nil && len(left) == 0 && len(processesOf(t, temp)) == 0 {
			return
		}
	}
}

// end runs a drill that suspends an agent, and then ends the drill by a signal.
func (d driller) end(t *testing.T, c *exec.Cmd, sig syscall.Signal) {
	t.Helper()
	c.Stderr = nil
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	suspended := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), " computing again") { // the step after the signal
			suspended = true
			if err := c.Process.Signal(sig); err != nil {
				t.Error(err)
			}
		}
	}
	if err := c.Wait(); err == nil || !suspended {
		t.Errorf("the drill has not been ended: %v", err)
	}
}

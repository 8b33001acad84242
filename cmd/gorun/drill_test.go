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

	"github.com/gorun/gorun/env/fulltest"
)

// restarted are the scenarios that TestDrill plays with --on-failure=restart unless it plays all; it plays the others with replace.
var restarted = []string{
	"worker-hang", "console-blocked", "disk-full", "leader-kill", "etcd-kill", "etcd-slow", "host-vanished", "scale-up", "newcomer-clash", "flapping-node", "etcd-no-leader",
}

// TestDrill plays each scenario, with real agents, etcds and workers, in a drill of its own. They run beside each other, as they
// mostly wait. It plays most with one policy only.
func TestDrill(t *testing.T) {
	d := driller{gorun: filepath.Join(t.TempDir(), "gorun")}
	// Without the race detector: a drill starts dozens of processes.
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", d.gorun, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	head, rows := documentedDrills(t)
	var documented, all []string
	for _, row := range rows {
		fields := strings.Fields(row)
		name, policy := fields[0], fields[1]
		documented = append(documented, name+" "+policy)
		switch {
		case name == "worker-kill" || fulltest.Full():
		case testing.Short(), slices.Contains(restarted, name) != (policy == "restart"): // the others take up to 15 seconds each
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
	if !slices.Equal(documented, all) {
		t.Errorf("docs/drills.md has the results of %q, where gorun drill would play %q", documented, all)
	}
	if testing.Short() {
		return
	}
	for name, test := range map[string]func(*testing.T){
		"json": d.json, "random": d.random, "program": d.program, "program that lives on": d.survivors, "program that fails": d.badProgram, "fails": d.fails, "interrupted": d.interrupted, "killed": d.killed,
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
	temp, err := os.MkdirTemp("", "drill") //nolint:usetesting // shorter than t's: the path of a socket may have 107 bytes
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
func (d driller) scenario(t *testing.T, name, policy, want string) {
	c, stderr, _ := d.command(t, "-v", "--on-failure="+policy, name)
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	got := normal(string(out))
	_, noIP := exec.LookPath("ip")
	lacks := noIP != nil || os.Getuid() != 0 || strings.Contains(got, "cannot bound the memory") || strings.Contains(got, "cannot mount")
	if strings.Contains(got, " - - - - skipped: ") && lacks {
		t.Skip(got)
	}
	if got != want {
		t.Errorf("the table is\n%s\nwhere docs/drills.md has\n%s\n%s", got, want, stderr)
	}
}

// normal is a table without the widths of its columns, and without times.
func normal(table string) string {
	table = regexp.MustCompile(`[0-9]+( \([0-9]+\))? ms`).ReplaceAllString(table, "N ms")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(table, " "))
}

// json is for programs; the number of nodes and workers is up to the user.
func (d driller) json(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "picture.svg")
	c, stderr, _ := d.command(t, "--json", "--svg="+svg, "--nodes=2", "--nproc-per-node=1", "--on-failure=replace", "--repeat=2", "worker-kill", "scale-down")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if picture, err := os.ReadFile(svg); err != nil || !bytes.HasPrefix(picture, []byte("<svg ")) || !bytes.Contains(picture, []byte("SIGTERM to the agent of node 1")) {
		t.Errorf("%v, the picture is %.100q", err, picture)
	}
	type times struct{ Median, Worst float64 }
	var report struct {
		Results []struct {
			Scenario, Why string
			Policy        string `json:"on_failure"`
			Held, Skipped bool
			Noticed       times `json:"noticed_ms"`
			NewRound      times `json:"new_round_ms"`
			FirstCorrect  times `json:"first_correct_ms"`
			Runs          []struct {
				Fault, Why, Logs string
				Held             bool
				Noticed          float64                               `json:"noticed_ms"`
				NewRound         float64                               `json:"new_round_ms"`
				FirstCorrect     float64                               `json:"first_correct_ms"`
				Leftovers        struct{ Processes, Ports, Files int } `json:"left_over"`
				Timeline         struct {
					Tracks []struct {
						Name  string
						Node  int
						Local *int `json:"local_rank"`
						Spans []struct {
							From       float64 `json:"from_ms"`
							To         float64 `json:"to_ms"`
							State      string
							Pid, Round int
							Rank       *int
						}
					}
				}
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil || len(report.Results) != 2 {
		t.Fatalf("%v, %d results of %s", err, len(report.Results), out)
	}
	for i, fault := range []string{"SIGKILL to a worker of node 1", "SIGTERM to the agent of node 1"} {
		r := report.Results[i]
		if !r.Held || r.Skipped || r.Why != "" || r.Policy != "replace" || len(r.Runs) != 2 || r.Noticed.Median <= 0 ||
			r.FirstCorrect.Worst != max(r.Runs[0].FirstCorrect, r.Runs[1].FirstCorrect) {
			t.Errorf("result %d is %+v\n%s", i, r, stderr)
		}
		for _, run := range r.Runs {
			if run.Fault != fault || !run.Held || run.Why+run.Logs != "" || run.Noticed <= 0 || run.FirstCorrect < run.NewRound || run.NewRound <= 0 {
				t.Errorf("in result %d there is %+v\n%s", i, run, stderr)
			}
			states := make(map[string]bool)
			for _, track := range run.Timeline.Tracks {
				for _, span := range track.Spans {
					states[span.State] = true
				}
			}
			if want := []string{"joining", "computing", "waiting"}; slices.ContainsFunc(want, func(s string) bool { return !states[s] }) {
				t.Errorf("the timeline has the states %v, and lacks one of %q", states, want)
			}
		}
	}
}

// random: of every fault it is told how long it took until all computed again.
func (d driller) random(t *testing.T) {
	c, stderr, _ := d.command(t, "--random", "--on-failure=replace", "--seed=7", "--minutes=0.05", "--nproc-per-node=1")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if strings.Contains(string(out), " skipped: ") {
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

// program: the user's own is judged by its exit code, the restarts and its lines.
func (d driller) program(t *testing.T) {
	c, stderr, _ := d.command(t, "--on-failure=restart", "--after=1ms", "--nodes=2", "worker-kill", "worker-oom", "scale-down",
		"--", "sh", "-c", "for i in $(seq 100); do echo step $i; sleep 0.1; done")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	want := []string{
		`^worker-kill +restart +SIGKILL to a worker of node 1 +[0-9]+ ms +[0-9]+ ms +[0-9]+ ms +yes +none$`,
		`^worker-oom +restart +- +- +- +- +skipped: only the built-in program does what this needs +-$`,
		`^scale-down +restart +SIGTERM to the agent of node 1 +[0-9]+ ms +[0-9]+ ms +[0-9]+ ms +yes +none$`,
	}
	for _, line := range want {
		if !regexp.MustCompile("(?m)" + line).Match(out) {
			t.Errorf("the table is\n%swhere a line is to be %s\n%s", out, line, stderr)
		}
	}
	if text := stderr.String(); !strings.Contains(text, "worker-kill, restart: of 3 workers that the fault did not hit, 0 have lived on") {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// survivors: a program that takes part in --on-failure=replace.
func (d driller) survivors(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	c, stderr, _ := d.command(t, "--on-failure=replace", "worker-kill", "--", "python3", filepath.Join("testdata", "drill", "stays.py"))
	out, err := c.Output()
	if err != nil || !regexp.MustCompile(`(?m)^worker-kill +replace .* yes +none$`).Match(out) {
		t.Errorf("%v, the table is\n%s\n%s", err, out, stderr)
	}
	if !strings.Contains(stderr.String(), "worker-kill, replace: of 5 workers that the fault did not hit, 5 have lived on") {
		t.Errorf("stderr is\n%s", stderr)
	}
}

// badProgram: one that does not survive a restart does not hold.
func (d driller) badProgram(t *testing.T) {
	const script = `echo starting; test $TORCHELASTIC_RESTART_COUNT = 0 || exit 7; for i in $(seq 1000); do echo step; sleep 0.1; done`
	c, stderr, temp := d.command(t, "--on-failure=restart", "--after=1ms", "--nodes=2", "--timeout=30s", "worker-kill", "--", "sh", "-c", script)
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != 1 || !regexp.MustCompile(`(?m)^worker-kill .* NO: .*has ended: exit status 7 +none$`).Match(out) {
		t.Errorf("exit code %d, the table is\n%s\n%s", code, out, stderr)
	}
	if err := os.RemoveAll(temp); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir(temp, 0o700); err != nil { // the command's check finds it empty
		t.Error(err)
	}
}

// fails: a drill that does not hold is told of, and what the agents have said is kept.
func (d driller) fails(t *testing.T) {
	c, stderr, temp := d.command(t, "--timeout=1ms", "--on-failure=restart", "agent-kill")
	out, _ := c.Output()
	if code := c.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !regexp.MustCompile(`(?m)^agent-kill +restart +- +- +- +- +NO: .*: not finished within 1ms: no worker has started +none$`).Match(out) {
		t.Errorf("the table is\n%s", out)
	}
	logs := regexp.MustCompile(`(?m)^agent-kill, restart: logs are in (.*)$`).FindSubmatch(stderr.Bytes())
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
	c, _, _ := d.command(t, "-v", "--on-failure=replace", "agent-stop")
	d.end(t, c, syscall.SIGTERM)
	if code := c.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d, want %d", code, 128+int(syscall.SIGTERM))
	}
}

// killed: no process is left, and no file.
func (d driller) killed(t *testing.T) {
	c, _, temp := d.command(t, "-v", "--on-failure=replace", "agent-stop")
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

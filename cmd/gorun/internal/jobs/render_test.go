package jobs

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/env/progress"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)

// example is a job of three nodes: one runs, one waits, and one does not answer.
func example() []status.Node {
	a := status.Node{
		Job: "train17", Endpoint: "a:29400", Program: "./train.py", Host: "a", Pid: 7, State: status.Running, Since: noon, Why: "the workers are started",
		MaxRestarts: 3, Round: &status.Round{ID: 2, Nodes: 2, WorldSize: 3, Restarts: 1},
		Workers: []status.Worker{
			{Rank: 0, Pid: 8, State: status.WorkerRunning, Started: noon, Restarts: 1, Doing: "AllReduce #17"},
			{Rank: 1, LocalRank: 1, Pid: 9, State: status.WorkerFailed, Started: noon, Exit: &status.Exit{Code: 3, Text: "exit code 3", At: noon.Add(time.Minute)}},
		},
		Failure: &status.Failure{Rank: 1, Round: 2, Text: "rank 1 (local rank 1, pid 9): exit code 3", At: noon.Add(time.Minute)},
		Events:  []status.Event{{At: noon, Kind: status.KindRoundFormed, Text: "round 2 begins with 2 nodes and 3 ranks"}},
		Logs:    "/logs/train17_x",
	}
	b := status.Node{
		Job: "train17", Endpoint: "a:29400", Program: "./train.py", Host: "b", Pid: 17, State: status.Joining, Since: noon.Add(-time.Hour), MaxRestarts: 3,
		Waiting: &status.Waiting{For: "round 3: 1 of 2 nodes", Since: noon}, Why: "a\tb\x1b[2J",
	}
	c := status.Node{Job: "train17", Endpoint: "a:29400", Host: "c", Problem: "it does not answer within 3s"}
	return []status.Node{c, a, b}
}

func TestShow(t *testing.T) {
	job := status.Jobs(example())[0]
	want := `job train17: ./train.py, round 2 of 2 nodes and 3 ranks, 1 of 3 restarts used
its nodes meet at a:29400
b waits for 1m30s: round 3: 1 of 2 nodes
last failure 30s ago, in round 2 on a: rank 1 (local rank 1, pid 9): exit code 3
log files of a: /logs/train17_x

NODE  HOST  PID  STATE      FOR     WHY
0     a     7    running    1m30s   the workers are started
-     c     -    no answer          it does not answer within 3s
-     b     17   joining    1h1m30s a b\x1b[2J

RANK  NODE  LOCAL  PID  STATE    FOR    RESTARTS  DOING
0     0     0      8    running  1m30s  1         AllReduce #17
1     0     1      9    failed   30s    0         exit code 3

TIME      HOST  EVENT
12:00:00  a     round 2 begins with 2 nodes and 3 ranks
`
	compare(t, Show(&job, noon.Add(90*time.Second)), want)
}

func TestList(t *testing.T) {
	compare(t, List(example(), noon.Add(90*time.Second)), `JOB      HOST  PID  NODE    RANKS     STATE                         FOR      RESTARTS  PROGRAM
train17  a     7    0 of 2  0-1 of 3  running                       1m30s    1 of 3    ./train.py
train17  c     -    -       -         no answer  it does not answer within 3s
train17  b     17   -       -         joining                       1h1m30s  0 of 3    ./train.py
`)
}

func TestShowStacks(t *testing.T) {
	compare(t, ShowStacks(Result{Node: status.Node{Host: "a"}, Reply: &control.Reply{
		Files:  "/tmp/*/stacks.txt",
		Stacks: []agent.WorkerStacks{{Rank: 4, LocalRank: 1, Pid: 9, Doing: "it was in main.step"}, {Pid: 7}}}}),
		`rank 4 (local rank 1, pid 9) on a: it was in main.step
rank 0 (local rank 0, pid 7) on a: nothing is known of it
files on a: /tmp/*/stacks.txt
`)
}

func compare(t *testing.T, got, want string) {
	t.Helper()
	blanks := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", " | ")), " ")
	}
	if blanks(got) != blanks(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\x1b\t\r") {
			t.Errorf("not printable: %q", line)
		}
	}
}

func TestScreen(t *testing.T) {
	got := Screen("a long line\nb\nc\nd\n", 6, 3)
	if want := "\x1b[Ha long\x1b[K\r\nb\x1b[K\r\n(2 mor\x1b[K\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Screen("ä€\n", 80, 24); got != "\x1b[Hä€\x1b[K\x1b[J" {
		t.Errorf("%q", got)
	}
}

// TestRates: what a worker says of itself fits into a column, whatever it says.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		calls, sent float64
		want        string
	}{
		{0, 0, "0/s 0.0 MB/s"},
		{2.5e3, 1.25e9, "2500/s 1250.0 MB/s"},
		{1e308, 1e308, "1e+308/s 1.0e+302 MB/s"},
	} {
		if got := strings.Join(rates(&progress.Collectives{PerSecond: c.calls, SentPerSecond: c.sent}), " "); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.calls, c.sent, got, c.want)
		}
	}
}

// TestChoose: the name of a job, or a pid, chooses one; whoever means none, or several, is told which there are.
func TestChoose(t *testing.T) {
	agents := func(nodes ...status.Node) (list []Agent) {
		for _, n := range nodes {
			list = append(list, Agent{Node: n})
		}
		return list
	}
	x := status.Node{Job: "x", Host: "a", Pid: 7}
	y := status.Node{Job: "y", Host: "a", Pid: 8}
	again := status.Node{Job: "x", Host: "a", Pid: 9}
	mute := status.Node{Host: "this machine", Pid: 11, Problem: "it does not answer"}
	muteOf := func(job string) Agent { return Agent{Node: mute, path: "/run/11-" + job + ".sock"} }
	for _, c := range []struct {
		agents []Agent
		name   string
		want   string // the pid of the agent, or the error
	}{
		{agents(x), "", "7"},
		{agents(x, y), "y", "8"},
		{agents(x, y, again), "9", "9"},
		{agents(x, mute), "x", "7"},
		{agents(x, y), "", "which job? These run here: x, y"},
		{agents(x, y), "z", `no job "z" runs here, only: x, y`},
		{agents(x, again), "x", `2 jobs here have the name "x": give the pid of one of its agents, or of its gorun launch`},
		{[]Agent{muteOf("x")}, "y", "no job of yours runs on this machine; for one that runs elsewhere, give --rdzv-endpoint and --rdzv-id"},
		{[]Agent{muteOf("x")}, "", "gorun with pid 11 does not say its job: it does not answer"},
		{[]Agent{muteOf("x")}, "11", "gorun with pid 11 does not say its job: it does not answer"},
		{[]Agent{muteOf("x")}, "x", "gorun with pid 11 does not say its job: it does not answer"},
		{nil, "", "no job of yours runs on this machine; for one that runs elsewhere, give --rdzv-endpoint and --rdzv-id"},
	} {
		_, found, err := Choose(c.agents, c.name)
		if err != nil {
			if err.Error() != c.want {
				t.Errorf("%q: %v, want %s", c.name, err, c.want)
			}
			continue
		}
		if len(found) != 1 || pidOf(found[0].Node) != c.want {
			t.Errorf("%q: %+v, want pid %s", c.name, found, c.want)
		}
	}
}

// TestLaunched: gorun launch stands for the agents of its job, by the job's name and by its own pid, but not by a pid of another machine.
func TestLaunched(t *testing.T) {
	record := &control.Record{Job: "x", Endpoint: "a:1"}
	launcher := Agent{Node: status.Node{Job: "x", Endpoint: "a:1", Pid: 5}, Record: record}
	here := Agent{Node: status.Node{Job: "x", Endpoint: "a:1", Host: "a", ID: "a/7", Pid: 7}}
	mute := Agent{Node: status.Node{Pid: 11, Problem: "it does not answer"}, path: "/run/11-x.sock"}
	other := Agent{Node: status.Node{Job: "y", Pid: 8}}
	all := []Agent{here, launcher, mute, other}
	for name, want := range map[string]bool{"x": true, "5": true, "7": true, "y": false, "17": false} {
		_, agents, _ := Choose(all, name)
		if got := slices.ContainsFunc(agents, func(a Agent) bool { return a.Record == record }); got != want {
			t.Errorf("%s: %+v, want the record: %v", name, agents, want)
		}
	}
	for want, ask := range map[string]func(*control.Record) (*status.Job, error){
		"7 17 8": func(*control.Record) (*status.Job, error) {
			return &status.Job{ID: "x", Endpoint: "a:1", Nodes: []status.Node{here.Node, {Pid: 17}}}, nil
		},
		"7 5 11 8": func(*control.Record) (*status.Job, error) { return nil, errors.New("no etcd") },
	} {
		var pids []string
		for _, n := range Expand(all, ask) {
			pids = append(pids, pidOf(n))
		}
		if got := strings.Join(pids, " "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestChooseSilent: an agent that does not answer is shown with the others of its job.
func TestChooseSilent(t *testing.T) {
	x := status.Node{Job: "x", Endpoint: "a:29400", Host: "a", Pid: 7}
	mute := status.Node{Host: "this machine", Pid: 11, Problem: "it does not answer"}
	for job, want := range map[string]string{"x": "7 11", "y": "7"} {
		found, agents, err := Choose([]Agent{{Node: x}, {Node: mute, path: "/run/11-" + job + ".sock"}}, "x")
		if err != nil || len(agents) != 1 {
			t.Fatalf("%+v, %v", agents, err)
		}
		var pids []string
		for _, n := range found.Nodes {
			pids = append(pids, pidOf(n))
		}
		if strings.Join(pids, " ") != want {
			t.Errorf("beside one of %s: %q, want %s", job, pids, want)
		}
	}
}

package manager

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/testing/testkit"
)

// captured returns the environment that a manager has set, from testdata, with changes: NAME=value, or NAME for a variable that is not set.
func captured(t testing.TB, name string, changes ...string) map[string]string {
	t.Helper()
	environ := make(map[string]string)
	if name != "" {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		changes = append(strings.Split(strings.TrimSpace(string(text)), "\n"), changes...)
	}
	for _, kv := range changes {
		if name, value, ok := strings.Cut(kv, "="); ok {
			environ[name] = value
		} else {
			delete(environ, name)
		}
	}
	return environ
}

func lookupIn(environ map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := environ[name]; return v, ok }
}

var stepSources = Sources{ID: "SLURM_JOB_ID, SLURM_STEP_ID", Node: "SLURM_NODEID", Nodes: "SLURM_STEP_NUM_NODES", Hosts: "SLURM_STEP_NODELIST"}

func TestFind(t *testing.T) {
	n12 := []string{"n1", "n2"}
	onePerNode := Task{Manager: slurm, ID: "2.0", Rank: 1, Size: 2, LocalSize: 1, Local: []int{1}, Node: 1, Nodes: 2, Hosts: n12, Sources: stepSources}
	restarted := onePerNode
	restarted.ID, restarted.Sources.ID = "2.0.3", "SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT"
	byMPICH := Task{Manager: mpich, ID: "mpiexec", Unnamed: true, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Nodes: 1,
		Sources: Sources{ID: "MPICH", Node: "PMI_RANK", Nodes: "PMI_SIZE"}}
	byOpenMPI := Task{Manager: openMPI, ID: "109576193", Rank: 1, Size: 2, LocalSize: 1, Node: 1, Nodes: 2,
		Sources: Sources{ID: "PMIX_NAMESPACE", Node: "OMPI_COMM_WORLD_RANK", Nodes: "OMPI_COMM_WORLD_SIZE"}}
	for _, c := range []struct {
		name    string
		changes []string
		want    *Task
	}{
		{"", nil, nil},
		{"slurm-one-per-node", nil, &onePerNode},
		{"slurm-one-per-node", []string{"SLURM_RESTART_COUNT=0"}, &onePerNode},
		{"slurm-one-per-node", []string{"SLURM_RESTART_COUNT=3"}, &restarted},
		{"slurm-one-per-node", []string{"TORCHELASTIC_RUN_ID=17"}, nil},         // the task is a worker of gorun, and this is its child
		{"slurm-one-per-node", []string{"JOB_COMPLETION_INDEX=7"}, &onePerNode}, // Slurm in Kubernetes
		{"slurm-four-per-node", nil, &Task{Manager: slurm, ID: "3.0", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Local: []int{4, 5, 6, 7},
			Node: 1, Nodes: 2, Hosts: n12, Sources: stepSources}},
		{"slurm-four-per-node", []string{"SLURM_GTIDS=1,3,5,7", "SLURM_LOCALID=2"}, &Task{Manager: slurm, ID: "3.0", Rank: 5, Size: 8, LocalRank: 2, LocalSize: 4, Local: []int{1, 3, 5, 7},
			Node: 1, Nodes: 2, Hosts: n12, Sources: stepSources}}, // srun --distribution=cyclic
		{"slurm-pmi2", nil, &Task{Manager: slurm, ID: "4.1", Rank: 1, Size: 2, LocalSize: 1, Local: []int{1}, Node: 1, Nodes: 2, Hosts: n12, Sources: stepSources}},
		{"slurm-batch-script", nil, &Task{Manager: slurm, ID: "4", Script: true, JobNodes: 3, Sources: Sources{Nodes: "SLURM_JOB_NUM_NODES"}}},
		{"slurm-interactive", nil, &Task{Manager: slurm, ID: "2", Script: true, Interactive: true, JobNodes: 2, Sources: Sources{Nodes: "SLURM_JOB_NUM_NODES"}}},
		{"openmpi-in-slurm", nil, &byOpenMPI},
		{"mpich", nil, &byMPICH},
		{"mpich", []string{"MPI_LOCALNRANKS", "MPI_LOCALRANKID", "PMI_FD", "PMI_JOBID=12"}, &Task{Manager: mpich, ID: "12", Rank: 1, Size: 2, Sources: Sources{ID: "PMI_JOBID"}}},
		{"", []string{"PMI_RANK=0", "PMI_SIZE=1"}, &Task{Manager: mpich, ID: "mpiexec", Unnamed: true, Size: 1, LocalSize: 1, Nodes: 1, Sources: Sources{ID: "MPICH", Node: "PMI_RANK", Nodes: "PMI_SIZE"}}},
		{"flux", nil, &Task{Manager: flux, ID: "ƒ2Nq7bVxK", Rank: 1, Size: 2, LocalSize: 1, Node: 1, Nodes: 2,
			Sources: Sources{ID: "FLUX_JOB_ID", Node: "FLUX_TASK_RANK", Nodes: "FLUX_JOB_NNODES"}}},
		{"flux", []string{"FLUX_JOB_NNODES=1", "FLUX_TASK_LOCAL_ID=1"}, &Task{Manager: flux, ID: "ƒ2Nq7bVxK", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Nodes: 1,
			Sources: Sources{ID: "FLUX_JOB_ID", Node: "FLUX_TASK_RANK", Nodes: "FLUX_JOB_NNODES"}}},
		{"kubernetes", nil, &Task{Manager: kubernetes, ID: "job", Node: 3, LocalSize: 1, Sources: Sources{Node: "JOB_COMPLETION_INDEX"}}},
	} {
		got, err := Find(lookupIn(captured(t, c.name, c.changes...)))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q:\n got %+v, %v\nwant %+v", c.name, c.changes, got, err, c.want)
		}
	}
}

// TestFindSaysWhatIsWrong: a variable that is wrong, or contradicts another, is an error that names it.
func TestFindSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, change, want string }{
		{"slurm-one-per-node", "SLURM_NODEID", "SLURM_NODEID is not set, though other variables of the same manager are"},
		{"slurm-one-per-node", "SLURM_STEP_NODELIST", "SLURM_STEP_NODELIST is not set, though other variables of the same manager are"},
		{"slurm-one-per-node", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE is not set, though other variables of the same manager are"},
		{"slurm-one-per-node", "SLURM_NODEID=-1", `SLURM_NODEID="-1": want a number of at least 0`},
		{"slurm-one-per-node", "SLURM_NODEID=2", "the variables of Slurm contradict each other: node number 2 of 2, and tasks of 2 nodes (SLURM_STEP_TASKS_PER_NODE)"},
		{"slurm-one-per-node", "SLURM_PROCID=2", "the variables of Slurm contradict each other: task number 2 of 2"},
		{"slurm-one-per-node", "SLURM_STEP_NUM_TASKS=9999999999", `SLURM_STEP_NUM_TASKS="9999999999": want a number of at least 0`},
		{"slurm-one-per-node", "SLURM_STEP_NODELIST=n[1-3]", "the variables of Slurm contradict each other: 2 nodes, and the names of 3 (SLURM_STEP_NODELIST)"},
		{"slurm-one-per-node", "SLURM_STEP_NODELIST=n[1-", "SLURM_STEP_NODELIST: "},
		{"slurm-one-per-node", "SLURM_STEP_TASKS_PER_NODE=1(x3)", "the variables of Slurm contradict each other: node number 1 of 2, and tasks of 3 nodes (SLURM_STEP_TASKS_PER_NODE)"},
		{"slurm-one-per-node", "SLURM_STEP_TASKS_PER_NODE=x", "SLURM_STEP_TASKS_PER_NODE: "},
		{"slurm-one-per-node", "SLURMD_NODENAME=n1", `the variables of Slurm contradict each other: node number 1 of SLURM_STEP_NODELIST is n2, and SLURMD_NODENAME="n1"`},
		{"slurm-one-per-node", "SLURM_LOCALID=1", "the variables of Slurm contradict each other: task of this node number 1 of 1"},
		{"slurm-one-per-node", "SLURM_GTIDS=0", "the variables of Slurm contradict each other: task 1 is number 0 of tasks [0] of this node"},
		{"slurm-four-per-node", "SLURM_GTIDS=4,5", "the variables of Slurm contradict each other: task 5 is number 1 of tasks [4 5] of this node"},
		{"slurm-four-per-node", "SLURM_GTIDS=4,5,5,7", `SLURM_GTIDS: "4,5,5,7": want 4 numbers below 8 that increase`},
		{"openmpi-in-slurm", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE is not set, though other variables of the same manager are"},
		{"openmpi-in-slurm", "OMPI_COMM_WORLD_LOCAL_SIZE=3", "the variables of Open MPI contradict each other: 3 of 2 tasks on this node"},
		{"slurm-one-per-node", "SLURM_JOB_ID=", "SLURM_JOB_ID is not set or empty, though SLURM_STEP_NUM_NODES is set: pass on all variables of Slurm, or none"},
		{"slurm-one-per-node", "SLURM_JOB_ID", "SLURM_JOB_ID is not set or empty, though SLURM_STEP_NUM_NODES is set: pass on all variables of Slurm, or none"},
		{"slurm-one-per-node", "SLURM_STEP_NUM_NODES=", "SLURM_STEP_NUM_NODES is not set or empty, though SLURM_STEP_NODELIST is set: pass on all variables of Slurm, or none"},
		{"slurm-batch-script", "SLURM_JOB_ID=", "SLURM_JOB_ID is not set or empty, though SLURM_JOB_NUM_NODES is set: pass on all variables of Slurm, or none"},
		{"openmpi-in-slurm", "OMPI_COMM_WORLD_RANK=", "OMPI_COMM_WORLD_RANK is not set or empty, though OMPI_COMM_WORLD_SIZE is set: pass on all variables of Open MPI, or none"},
		{"mpich", "PMI_RANK=", "PMI_RANK is not set or empty, though PMI_SIZE is set: pass on all variables of MPICH, or none"},
		{"kubernetes", "JOB_COMPLETION_INDEX=", "JOB_COMPLETION_INDEX is empty: in Kubernetes, only the pods of an Indexed Job have a number (completionMode: Indexed)"},
		{"", "FLUX_TASK_LOCAL_ID=1", "FLUX_TASK_RANK is not set or empty, though FLUX_TASK_LOCAL_ID is set: pass on all variables of Flux, or none"},
		{"mpich", "PMI_RANK=2", "the variables of MPICH contradict each other: task number 2 of 2"},
		{"flux", "FLUX_JOB_SIZE=none", `FLUX_JOB_SIZE="none": want a number of at least 0`},
		{"kubernetes", "JOB_COMPLETION_INDEX=x", `JOB_COMPLETION_INDEX="x": want a number of at least 0`},
	} {
		got, err := Find(lookupIn(captured(t, c.name, c.change)))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || got != nil || strings.HasSuffix(c.want, " ") == (err.Error() == c.want) {
			t.Errorf("%s %s:\n got %+v, %v\nwant %s", c.name, c.change, got, err, c.want)
		}
	}
}

// TestPort: the ports of jobs with nearby numbers, and of their steps, do not overlap, and neither do they meet those of outgoing
// connections. A restart does not change them.
func TestPort(t *testing.T) {
	taken := make(map[int]string)
	for job := 123000; job < 123300; job++ {
		for step := range 16 {
			id := strconv.Itoa(job) + "." + strconv.Itoa(step)
			port := Port(id)
			for p := port; p < port+portsOfJob; p++ {
				if other := taken[p]; other != "" {
					t.Fatalf("%s and %s have port %d", id, other, p)
				}
				taken[p] = id
			}
			if Port(id+".2") != port {
				t.Fatalf("%s has port %d, and after two restarts %d", id, port, Port(id+".2"))
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,12}){0,2}`)).Draw(t, "id")
		if p := Port(id); p < firstPort || p+portsOfJob > 32768 {
			t.Fatalf("Port(%q) = %d", id, p)
		}
	})
}

func TestPodNames(t *testing.T) {
	const domain = ".train.default.svc.cluster.local"
	job, names, err := podNames("train-3"+domain, 3, 3)
	if want := []string{"train-0" + domain, "train-1" + domain, "train-2" + domain}; err != nil || job != "train" || !slices.Equal(names, want) {
		t.Errorf("got %q, %q, %v; want %q", job, names, err, want)
	}
	if job, names, err := podNames("set-workers-0-12.set.ns", 12, 1); err != nil || job != "set-workers-0" || !slices.Equal(names, []string{"set-workers-0-0.set.ns"}) {
		t.Errorf("in a JobSet: %q, %q, %v", job, names, err)
	}
	other := func(own string) string {
		return "this pod is called \"" + own + "\", and its index is 3 (JOB_COMPLETION_INDEX): want a name that ends with -3 before the first dot"
	}
	for own, want := range map[string]string{
		"train-3":       "pod train-3 has no name that other pods can look up: give the Job a headless service, and the service's name to its pods as subdomain",
		"train-13.x":    other("train-13.x"),
		"train3.x":      other("train3.x"),
		"-3.x":          other("-3.x"),
		"train-4.train": other("train-4.train"),
	} {
		if _, _, err := podNames(own, 3, 1); err == nil || err.Error() != want {
			t.Errorf("%s: got %v\nwant %s", own, err, want)
		}
	}
}

// FuzzFind puts a hostile value into each variable in turn: the answer is one short line, or numbers that agree.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"", "0", "1", "-1", "n[1-2]", "n[1-99999999]", "4(x2)", "1(x999999)", "\x00", "0,1", "4294967290"} {
		f.Add(s)
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	environs := make(map[string]map[string]string)
	for _, e := range entries {
		if !e.IsDir() {
			environs[e.Name()] = captured(f, e.Name())
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		if len(value) > 128<<10 {
			return // longer than a variable can be
		}
		for _, environ := range environs {
			for name := range environ {
				changed := maps.Clone(environ)
				changed[name] = value
				var task *Task
				var err error
				testkit.AllocatesAtMost(t, 8<<20, func() { task, err = Find(lookupIn(changed)) })
				if err != nil {
					if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x00") {
						t.Errorf("%s=%.100q: %q", name, value, err)
					}
					continue
				}
				if task != nil && (task.Size > 0 && task.Rank >= task.Size || task.Nodes > 0 && task.Node >= task.Nodes || task.Hosts != nil && len(task.Hosts) != task.Nodes) {
					t.Errorf("%s=%.100q: %+v", name, value, task)
				}
			}
		}
	})
}

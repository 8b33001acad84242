// Package manager finds out which resource manager has started this process, and what it says of it: Slurm's srun, Open MPI's mpirun,
// MPICH's mpiexec and others that speak PMI, Flux, or Kubernetes. PBS, LSF and Grid Engine only list the hosts of a job. There is one file
// for each. The package reads variables and, where they do not say it, asks the manager.
//
// There are two questions. For gorun, this process is the agent of its node. For a worker that a manager has started without gorun, it is
// a rank. A Task answers both. A process that is no task may still belong to a job: HostsOfJob, FindKillLimit and SignalsAll answer what it
// needs to know of that job.
package manager

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// A Manager is what is the same for all jobs of a resource manager.
type Manager struct {
	Name   string // as people call it
	Starts string // the command that starts its tasks; empty: there is none
	PassOn string // what passes a variable on to the tasks, beside setting it; empty: nothing is needed
	Munge  bool   // its clusters have MUNGE

	onePerNode string // the command that starts one task on each node, where NODES stands for their number
	ownToken   string // what to write so that all tasks have the same GORUN_TOKEN; empty: as Export says
	uncounted  string // what it does not say of the nodes, and what to write; empty: see Uncounted
	unit       string // what is called the task's job in the words of the manager

	find   func(*variables) *Task                                  // nil: it does not start gorun
	by     string                                                  // the variable by which a task is found
	others []string                                                // other variables that only its tasks have
	meet   func(t *Task, count int, here Machine) (Meeting, error) // nil: on the first of its hosts

	around     string                   // a variable of all processes of a job, whether or not it has started them as tasks
	killLimit  func(ask bool) KillLimit // nil: it kills nobody, as far as gorun knows
	signalsAll bool                     // it may send a signal to every process of a job
	lists      []hostList               // the hosts of a job, the best list first
}

// managers are all of them. MPI comes first, since mpirun may itself run in a job of Slurm. Then the variables of Slurm describe mpirun's own
// helpers.
var managers = []*Manager{openMPI, mpich, slurm, flux, kubernetes, pbs, lsf, gridEngine}

// ShareToken says what to write so that all tasks have the same token.
func (m *Manager) ShareToken() string {
	if m.ownToken != "" {
		return m.ownToken
	}
	text := "write export GORUN_TOKEN=$(openssl rand -hex 32) before " + m.Starts
	if m.PassOn != "" {
		text += ", and " + strings.ReplaceAll(m.PassOn, "NAME", "GORUN_TOKEN")
	}
	return text
}

// OnePerNode is the command that starts one task on each of so many nodes; 0: as many as there are.
func (m *Manager) OnePerNode(nodes int) string {
	number := "NODES"
	if nodes > 0 {
		number = strconv.Itoa(nodes)
	}
	return strings.ReplaceAll(m.onePerNode, "NODES", number)
}

// A Task is a process that a manager has started as one of several, and what it says of them. The zero value of a number of tasks or nodes
// means that the manager does not say it.
type Task struct {
	*Manager
	ID string // of the job, such as 17.0 for step 0 of job 17 in Slurm; with .1 at its end in the first restart. Never empty

	Rank, Size           int      // the number of this task, and how many there are
	LocalRank, LocalSize int      // the number among the tasks of this node, and how many these are
	Local                []int    // the ranks of this node, by local rank; nil: the manager does not say them
	Node, Nodes          int      // the number of this node, and how many there are
	Hosts                []string // names of the nodes, by their numbers; nil: the manager does not say them

	Script      bool // not one of several: a batch script, or what runs in a shell, on the first node of the job or before it
	Interactive bool // with Script: a shell that Slurm has started on the first node
	JobNodes    int  // with Script: nodes of the job
	Unnamed     bool // the manager does not say the name of the job: ID is the same for all

	Sources Sources
}

// Sources says where the values of a Task come from: names of variables, separated by commas.
type Sources struct{ ID, Node, Nodes, Hosts string }

// Find returns what a manager says of this process. It returns nil if there is none, or if an agent of gorun or torchrun is between
// the manager and this process. lookup works like [os.LookupEnv]. The error names a variable that is wrong, or two that contradict each
// other.
func Find(lookup func(string) (string, bool)) (*Task, error) {
	if _, ok := lookup("TORCHELASTIC_RUN_ID"); ok {
		return nil, nil
	}
	for _, m := range managers {
		v := &variables{lookup: lookup}
		if m.find == nil {
			continue
		}
		if t := m.find(v); t != nil || v.err != nil {
			if v.err == nil {
				t.Manager = m
				v.err = t.check()
			}
			if v.err != nil {
				return nil, v.err
			}
			return t, nil
		}
	}
	return nil, incomplete(&variables{lookup: lookup})
}

// incomplete refuses a task that has lost the variable by which it is found: it would take itself for a job of its own.
func incomplete(v *variables) error {
	for _, m := range managers {
		for _, other := range m.others {
			if v.has(other) {
				return missing(m.Name, m.by, other)
			}
		}
	}
	if text, ok := v.lookup("JOB_COMPLETION_INDEX"); ok && text == "" {
		return errors.New("JOB_COMPLETION_INDEX is empty: in Kubernetes, only the pods of an Indexed Job have a number (completionMode: Indexed)")
	}
	return nil
}

// missing says that a variable is not set, or empty, though another of the same manager is set.
func missing(manager, name, other string) error {
	return fmt.Errorf("%s is not set or empty, though %s is set: pass on all variables of %s, or none", name, other, manager)
}

// check refuses numbers that contradict each other.
func (t *Task) check() error {
	for _, c := range []struct {
		what    string
		n, size int
	}{{"task", t.Rank, t.Size}, {"task of this node", t.LocalRank, t.LocalSize}, {"node", t.Node, t.Nodes}} {
		if c.size > 0 && c.n >= c.size {
			return fmt.Errorf("the variables of %s contradict each other: %s number %d of %d", t.Name, c.what, c.n, c.size)
		}
	}
	switch {
	case t.Size > 0 && t.LocalSize > t.Size:
		return fmt.Errorf("the variables of %s contradict each other: %d of %d tasks on this node", t.Name, t.LocalSize, t.Size)
	case t.Hosts != nil && len(t.Hosts) != t.Nodes:
		return fmt.Errorf("the variables of %s contradict each other: %d nodes, and the names of %d (%s)", t.Name, t.Nodes, len(t.Hosts), t.Sources.Hosts)
	case t.Local != nil && (len(t.Local) != t.LocalSize || t.Local[t.LocalRank] != t.Rank):
		return fmt.Errorf("the variables of %s contradict each other: task %d is number %d of tasks %v of this node", t.Name, t.Rank, t.LocalRank, t.Local)
	}
	return nil
}

// IsAlone reports whether this task is the only one of its node, as an agent is. If the manager does not say how many there are, it is.
func (t *Task) IsAlone() bool { return t.LocalSize <= 1 && t.LocalRank == 0 }

// String names the manager, and the job or the step.
func (t *Task) String() string {
	if t.unit == "" || t.Script {
		return t.Name + " job " + t.ID
	}
	return t.Name + " " + t.unit + " " + t.ID
}

// Uncounted is the error of a task whose manager does not say how many nodes there are.
func (t *Task) Uncounted() error {
	if t.uncounted != "" {
		return fmt.Errorf("%s does not say %s", t.Name, t.uncounted)
	}
	return fmt.Errorf("%s does not say on how many hosts its %d processes run: add --nnodes=N; if each is a job of its own, add --standalone", t.Name, t.Size)
}

// A Machine is what a manager needs of the machine, beside variables.
type Machine struct {
	Hostname func() (string, error) // as os.Hostname
	Root     fs.FS                  // the file system, from /
}

// A Meeting is where the tasks of a job meet.
type Meeting struct {
	Hosts                             []string // the first of them
	Port                              int      // the first of the job's ports there; 0: the usual one
	Job                               string   // the name of the job, if only the meeting says it; or empty
	HostSource, PortSource, JobSource string   // what these follow from
}

// Meet returns where the job's tasks can meet: on the first hosts, count at most.
func (t *Task) Meet(count int, here Machine) (Meeting, error) {
	switch {
	case t.meet != nil:
		return t.meet(t, count, here)
	case len(t.Hosts) == 0:
		return Meeting{}, fmt.Errorf("%s does not say on which hosts its %d tasks run: say where they meet, as in gorun --rdzv-endpoint=HOST, "+
			"where HOST is the first of the hosts", t.Name, t.Size)
	}
	hosts := slices.Clone(t.Hosts[:min(count, len(t.Hosts))])
	return Meeting{Hosts: hosts, Port: Port(t.ID), HostSource: t.Sources.Hosts, PortSource: t.Sources.ID}, nil
}

// The ports of a job, counted from Port: two for the etcd, the endpoint's and the next, one for the token, and one for the master.
const (
	TokenPort  = 2
	MasterPort = 3
)

const (
	firstPort  = 10240
	portsOfJob = 4
	portRanges = 5623 // a prime number. All ports are below 32768, where Linux begins to give ports to outgoing connections
)

// Port returns the first of four ports for the job or step with this ID, from 10240 to 32731. Jobs of nearby numbers have different ports,
// as have the first 16 steps of a job, so that jobs which share a node rarely meet. A restarted job has the ports that it had.
func Port(id string) int {
	var job, step uint64
	parts := strings.SplitN(id, ".", 3)
	job, err := strconv.ParseUint(parts[0], 10, 32)
	if err == nil && len(parts) > 1 {
		step, err = strconv.ParseUint(parts[1], 10, 32)
	}
	n := 16*job + step
	if err != nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(id)) // never fails
		n = h.Sum64()
	}
	return firstPort + portsOfJob*int(n%portRanges)
}

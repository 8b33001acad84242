package manager

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// interactiveStep is the number of the step in which salloc runs a shell on the first node, if the cluster is configured for that.
const interactiveStep = "4294967290"

// ofStep are variables that a step has, and a batch script does not.
var ofStep = []string{"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}

var slurm = &Manager{
	Name: "Slurm", Starts: "srun", onePerNode: "srun --ntasks=NODES --ntasks-per-node=1", Munge: true, unit: "step",
	find: findSlurm, by: "SLURM_JOB_ID",
	around: "SLURM_JOB_ID", killLimit: slurmKillLimit, signalsAll: true,
	others: append([]string{"SLURM_STEP_NUM_NODES", "SLURM_STEP_ID", "SLURM_JOB_NUM_NODES"}, ofStep...),
}

// findSlurm reads what srun has set. A batch script has the variables of a job, but not those of a step.
func findSlurm(v *variables) *Task {
	if !v.has("SLURM_JOB_ID") {
		return nil
	}
	t := &Task{}
	step := v.text("SLURM_STEP_ID")
	restarts := v.text("SLURM_RESTART_COUNT")
	if restarts == "0" {
		restarts = ""
	}
	if i := slices.IndexFunc(ofStep, v.has); i >= 0 && !v.has("SLURM_STEP_NUM_NODES") && step != interactiveStep {
		v.err = missing("Slurm", "SLURM_STEP_NUM_NODES", ofStep[i])
		return nil
	}
	if !v.has("SLURM_STEP_NUM_NODES") || step == interactiveStep {
		nodes := "SLURM_JOB_NUM_NODES"
		if !v.has(nodes) {
			nodes = "SLURM_NNODES"
		}
		t.ID, t.Script, t.JobNodes = joined(v.text("SLURM_JOB_ID"), restarts), true, v.numberOr(nodes, 1)
		t.Interactive = step == interactiveStep
		t.Sources.Nodes = nodes
		return t
	}
	t.ID = joined(v.text("SLURM_JOB_ID"), step, restarts)
	t.Sources = Sources{
		ID: "SLURM_JOB_ID, SLURM_STEP_ID", Node: "SLURM_NODEID", Nodes: "SLURM_STEP_NUM_NODES", Hosts: "SLURM_STEP_NODELIST",
	}
	if restarts != "" {
		t.Sources.ID += ", SLURM_RESTART_COUNT"
	}
	t.Rank, t.Size = v.number("SLURM_PROCID"), v.number("SLURM_STEP_NUM_TASKS")
	t.Node, t.Nodes = v.number("SLURM_NODEID"), v.number("SLURM_STEP_NUM_NODES")
	t.LocalRank = v.number("SLURM_LOCALID")
	var err error
	if t.Hosts, err = ExpandHosts(v.required("SLURM_STEP_NODELIST")); err != nil {
		v.fail("SLURM_STEP_NODELIST", err)
	}
	counts, err := ExpandCounts(v.required("SLURM_STEP_TASKS_PER_NODE"))
	if err != nil {
		v.fail("SLURM_STEP_TASKS_PER_NODE", err)
	}
	if v.err != nil {
		return nil
	}
	if len(counts) != t.Nodes || t.Node >= t.Nodes {
		v.err = fmt.Errorf("the variables of Slurm contradict each other: node number %d of %d, and tasks of %d nodes (SLURM_STEP_TASKS_PER_NODE)", t.Node, t.Nodes, len(counts))
		return nil
	}
	t.LocalSize = counts[t.Node]
	t.Local = gtids(v, t)
	if name := v.text("SLURMD_NODENAME"); v.err == nil && name != "" && t.Node < len(t.Hosts) && name != t.Hosts[t.Node] {
		v.err = fmt.Errorf("the variables of Slurm contradict each other: node number %d of SLURM_STEP_NODELIST is %s, and SLURMD_NODENAME=%.64q", t.Node, t.Hosts[t.Node], name)
	}
	return t
}

// gtids returns the ranks of this node. Slurm may number tasks cyclically, so that they are not contiguous.
func gtids(v *variables, t *Task) []int {
	text := v.text("SLURM_GTIDS")
	if text == "" {
		return nil
	}
	var ranks []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(item)
		if err != nil || n < 0 || n >= t.Size || len(ranks) == t.LocalSize || len(ranks) > 0 && slices.Max(ranks) >= n {
			v.fail("SLURM_GTIDS", fmt.Errorf("%.64q: want %d numbers below %d that increase", text, t.LocalSize, t.Size))
			return nil
		}
		ranks = append(ranks, n)
	}
	return ranks
}

// SlurmConfig asks slurmctld for Slurm's settings. The shell ignores the signals that Slurm may be sending to every process of this job.
func SlurmConfig(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap "" TERM INT HUP QUIT; exec scontrol show config`)
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scontrol show config: %w", err)
	}
	return string(out), nil
}

// slurmctldTimeout bounds how long gorun waits for slurmctld when it has been told to end, and has to be quick.
const slurmctldTimeout = 2 * time.Second

func slurmKillLimit(ask bool) KillLimit {
	if !ask {
		return killWait("", errors.New("not asked yet"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), slurmctldTimeout)
	defer cancel()
	return killWait(SlurmConfig(ctx))
}

var killWaitLine = regexp.MustCompile(`(?m)^KillWait\s*=\s*(\d{1,5}) sec`)

// killWait reads KillWait from Slurm's settings.
func killWait(config string, err error) KillLimit {
	if err == nil {
		if found := killWaitLine.FindStringSubmatch(config); found != nil {
			seconds, _ := strconv.Atoi(found[1]) // digits
			return KillLimit{time.Duration(seconds) * time.Second, "Slurm's KillWait", true}
		}
		err = errors.New("scontrol show config: no KillWait in it")
	}
	return KillLimit{defaultKill, fmt.Sprintf("Slurm's default of KillWait (%v)", err), false}
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// A pod is a machine that has the name, the names of others and the files of a pod of an Indexed Job.
type pod struct {
	*hosttest.Machine
	index int
}

const (
	podDomain = ".train.default.svc.cluster.local"
	podEntry  = `(sleep 0.3 &) && exec gorun "$@"` // leaves an orphan to process 1
)

// know sets which names of pods this pod can look up: those of others, and no more. In Kubernetes, the DNS server does that, some time after a
// pod has started.
func (p pod) know(t *testing.T, others ...pod) {
	t.Helper()
	hosts := "127.0.0.1 localhost\n"
	for _, o := range others {
		hosts += fmt.Sprintf("%s %s%s", o.Addr, o.Name, podDomain)
		if o.index == p.index {
			hosts += " " + o.Name
		}
		hosts += "\n"
	}
	p.Run(t, "sh", "-c", `printf %s "$1" >/etc/hosts`, "sh", hosts)
}

// start starts gorun as process 1 of the pod's container.
func (p pod) start(t *testing.T, args ...string) *node {
	t.Helper()
	p.Run(t, "sh", "-c", "echo hosts: files >/run/nsswitch.conf && mount --bind /run/nsswitch.conf /etc/nsswitch.conf")
	return startBy(t, func(cmd *exec.Cmd) error {
		cmd.Env = append(cmd.Env, "GORUN_TOKEN="+secretToken, "GORUN_TERMINATION_GRACE_PERIOD_SECONDS=10",
			"KUBERNETES_SERVICE_HOST=10.96.0.1", fmt.Sprint("JOB_COMPLETION_INDEX=", p.index))
		return p.Start(cmd)
	}, patience, hosttest.Need(t, "unshare", "util-linux"), append([]string{"unshare", "--kill-child", "--pid", "--fork", "--mount-proc", "sh", "-c", podEntry, "sh"}, args...)...)
}

// TestIndexedJob: the pods of an Indexed Job need only the number of pods and a token. A pod waits for one whose name cannot be looked up
// yet, and says so. One that is evicted ends in time. The others go on if there may be
// fewer, and its successor joins them.
func TestIndexedJob(t *testing.T) {
	t.Parallel()
	machines := hosttest.NewMachines(t, hosttest.Config{Name: "train-0"}, hosttest.Config{Name: "train-1"})
	pods := []pod{{machines[0], 0}, {machines[1], 1}}
	release := newRelease(t)
	args := []string{"--nnodes=1:2", "--rdzv-conf=after_end=result", "sh", "-c",
		`trap 'echo saved; exit 1' TERM
		while grep -qs '^Name:.sleep$' /proc/[0-9]*/status; do sleep 0.05; done
		echo rank $RANK of $WORLD_SIZE in $TORCHELASTIC_RUN_ID
		` + release.await()}
	pods[0].know(t, pods[0])
	pods[1].know(t, pods[1])
	second := pods[1].start(t, args...)
	second.expect(`waiting: train-0\.train\.default\.svc\.cluster\.local:29400: no such host`)
	pods[0].know(t, pods...)
	pods[1].know(t, pods...)
	first := pods[0].start(t, args...)
	first.expect(`Kubernetes job job: --node-rank=0 \(JOB_COMPLETION_INDEX\) .* --rdzv-endpoint=train-0\.train\.default\.svc\.cluster\.local:29400 `)
	first.expect("rank 0 of 2 in train$")
	second.expect("rank 1 of 2 in train$")

	if err := syscall.Kill(childOf(t, second.cmd.Process.Pid), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said := second.end(143)
	for _, want := range []string{
		"stopping 1 worker, and killing what has not ended in 5s (gorun itself is killed after 10s: GORUN_TERMINATION_GRACE_PERIOD_SECONDS)",
		"] saved\n",
		"gorun: stopped by signal 15 (SIGTERM)\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	first.expect("rank 0 of 1 in train$")
	pods[1].Kill()
	pods[1].Boot(t)
	pods[1].know(t, pods...)
	second = pods[1].start(t, args...)
	second.expect("rank 1 of 2 in train$")
	first.expect("rank 0 of 2 in train$")
	release.create(t)
	first.end(0)
	second.end(0)
}

// childOf is the only child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("children of process %d: %q", pid, text)
	}
	return child
}

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous/embedded"
)

// TestNextJobOfAStep: a step runs one gorun after the other. A node that is ahead meets the etcd of the last job, which is about to end, and
// waits until it has ended. The etcd waits for some seconds, so on a busy machine the node may come too late for it.
func TestNextJobOfAStep(t *testing.T) {
	t.Parallel()
	for range 3 {
		if metLastJob(t) {
			return
		}
	}
	t.Error("no node has met the etcd of the last job")
}

// metLastJob runs two jobs of a step, and reports whether a node of the second one has met the etcd of the first one.
func metLastJob(t *testing.T) bool {
	t.Helper()
	job, endpoint := freeStep(t)
	start := func(node int, script string) *node {
		return startBy(t, func(cmd *exec.Cmd) error {
			cmd.Env = append(cmd.Env, "GORUN_TOKEN="+secretToken, "SLURM_JOB_ID="+job, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=2", "SLURM_STEP_NUM_TASKS=2",
				"SLURM_STEP_NODELIST=127.0.0.[1-2]", "SLURM_STEP_TASKS_PER_NODE=1(x2)", "SLURM_LOCALID=0", fmt.Sprint("SLURM_PROCID=", node), fmt.Sprint("SLURM_NODEID=", node))
			return cmd.Start()
		}, 2*patience, os.Args[0], "gorun", "sh", "-c", script)
	}
	release := newRelease(t)
	last := "echo runs; " + release.await()
	first, second := start(0, last), start(1, last)
	first.expect("runs$")
	second.expect("runs$")
	// Somebody who looks at the job keeps its etcd for some seconds.
	credentials, err := embedded.ClientTLS([]byte(secretToken))
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: credentials, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Close() }() // unless it has been closed
	if _, err := watcher.Get(t.Context(), "gorun"); err != nil {
		t.Fatal(err)
	}
	release.create(t)
	second.end(0)
	next := start(1, "echo next rank $RANK")
	next.expect(`waiting: (the last job named "` + job + `\.0" to end$|.*connection refused)`)
	met := strings.Contains(next.said.Text(), "the last job")
	_ = watcher.Close() // it was only there
	first.end(0)
	first = start(0, "echo next rank $RANK")
	first.expect("next rank 0$")
	next.expect("next rank 1$")
	first.end(0)
	next.end(0)
	return met
}

// freeStep returns a job whose first step meets at a port that is reserved until the test ends, if its first node is 127.0.0.1, and that
// endpoint. Its etcd has one member, and so needs no second port.
func freeStep(t *testing.T) (job, endpoint string) {
	t.Helper()
	for range 100 {
		job = strconv.Itoa(1 + rand.IntN(1_000_000))
		port := manager.Port(job + ".0")
		p, err := network.ClaimPort("", port)
		if err == nil {
			t.Cleanup(func() { _ = p.Close() })
			return job, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("no free port")
	return "", ""
}

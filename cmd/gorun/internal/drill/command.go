package drill

import (
	"cmp"
	_ "embed"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// longCall is long enough to notice a dead node.
const longCall = 10 * time.Second

// agentArgs are the arguments of the agent of a node. Its workers run program.
func (s *testbed) agentArgs(node int, program string) []string {
	j, n := s.job, s.options.Nodes
	conf := fmt.Sprintf("is_host=%t,last_call_timeout=%v", j.isHost(node), cmp.Or(j.lastCall, longCall).Seconds())
	if j.ttl > 0 {
		conf += fmt.Sprint(",ttl=", j.ttl.Seconds())
	}
	args := []string{
		fmt.Sprintf("--nnodes=%d:%d", j.least(n), n), fmt.Sprint("--nproc-per-node=", s.options.Nproc), "--max-restarts=3",
		linePrefix, "--rdzv-backend=embedded", "--rdzv-endpoint=" + s.endpoints, "--rdzv-id=drill", "--rdzv-conf=" + conf,
	}
	args = slices.Concat(args, s.access(), j.flags)
	if s.policy == Replace {
		args = append(args, "--on-failure=replace")
	}
	if s.isFull(node) {
		args = append(args, logFlag, "--redirects=3")
	}
	if j.ranks {
		args = append(args, fmt.Sprint("--node-rank=", node))
	}
	if s.options.Program != nil {
		return slices.Concat(args, []string{program, ProgramCommand, s.socket(), strconv.Itoa(node), s.options.Dir}, s.options.Program)
	}
	worker := []string{program, WorkerCommand}
	if s.options.Torch != "" {
		worker = []string{"--python=" + s.options.Torch, filepath.Join(s.dir, torchWorker)}
	}
	if s.options.Preload {
		args = append(args, "--preload=auto", "--preload-strict")
	}
	return slices.Concat(args, worker, []string{s.socket(), strconv.Itoa(node)}, s.behaviours(node))
}

// torchWorker is the name of the file with the worker in PyTorch.
const torchWorker = "worker.py"

//go:embed worker.py
var torchProgram []byte

// behaviours are those of the built-in workers of a node.
func (s *testbed) behaviours(node int) (list []string) {
	if s.isUnread(node) {
		list = append(list, writes)
	}
	if s.isFull(node) {
		list = append(list, logs)
	}
	switch {
	case s.policy == Replace:
		list = append(list, rejoins)
	case s.job.hang:
		list = append(list, hangs)
	}
	return list
}

// etcdArgs are the arguments of a member of etcd.
func (s *testbed) etcdArgs(member int) []string {
	return append([]string{"etcd", "--rdzv-endpoint=" + s.endpoints, "--data-dir=" + s.dataDir(member)}, s.access()...)
}

// access is what a process needs to reach others on a network.
func (s *testbed) access() []string {
	if s.network == nil {
		return nil
	}
	return []string{"--rdzv-token-file=" + s.tokenFile()}
}

// isLast reports whether a host is the last node.
func (s *testbed) isLast(host int) bool { return host == s.options.Nodes-1 }

// isUnread reports whether nobody reads the console of a host.
func (s *testbed) isUnread(host int) bool { return s.job.unread && s.isLast(host) }

// isFull reports whether the disk of a host is small, and gets full.
func (s *testbed) isFull(host int) bool { return s.job.disk && s.isLast(host) }

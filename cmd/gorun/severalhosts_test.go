package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
	"github.com/gorun/gorun/env/testing/testkit"
)

// newNetwork returns a network of hosts, if this machine can have one.
func newNetwork(t *testing.T) *hosts.Network {
	t.Helper()
	network, err := hosts.New()
	if unavailable, ok := errors.AsType[*hosts.UnavailableError](err); ok {
		testkit.Cannot(t, "%v", unavailable)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	return network
}

// Nodes on hosts of their own, whose ranks share memory with those of the same host only: all results of all collectives are
// right, whichever rank is the root.
func TestRanksOnSeveralHosts(t *testing.T) {
	network := newNetwork(t)
	gorun, dir := buildGorun(t), t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(secretToken), 0o600); err != nil {
		t.Fatal(err)
	}
	ranks := []int{2, 1, 3} // of each node
	nodes, said := make([]*exec.Cmd, len(ranks)), make([]bytes.Buffer, len(ranks))
	for i, n := range ranks {
		nodes[i] = exec.CommandContext(t.Context(), gorun, "bench", "-b4", "-e256K", "-f256", "-n1", "-w1", "-rall", "--json",
			"--rdzv-backend=embedded", "--rdzv-endpoint="+hosts.Addr(0), "--rdzv-token-file="+token,
			fmt.Sprint("--nnodes=", len(ranks)), fmt.Sprint("--node-rank=", i), fmt.Sprint("--nproc-per-node=", n))
		nodes[i].Env = append(os.Environ(), "TMPDIR="+dir)
		nodes[i].Stdout, nodes[i].Stderr = &said[i], &said[i]
		if err := network.Start(nodes[i], i); err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range nodes {
		if err := node.Wait(); err != nil {
			t.Errorf("node %d: %v\n%s", i, err, said[i].String())
		}
	}
	if table := said[0].String(); strings.Count(table, `"wrong":0`) < 100 || !strings.Contains(table, `"ranks":6`) {
		t.Errorf("node 0 says\n%s", table)
	}
}

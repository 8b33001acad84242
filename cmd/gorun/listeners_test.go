package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What listens, as docs/security.md has it in the first column of its table.
const (
	agentStore = "store of the workers, one node"
	etcdNodes  = "etcd, for nodes"
	etcdPeers  = "etcd, for its other members (three endpoints)"
	agentPeers = "connections between agents; status and commands over the network"
	statusPage = "status page and metrics (`--status-addr`)"
	ranksStore = "store of the ranks"
	eachRank   = "each rank"
)

// TestWhatListens holds the table of docs/security.md: whatever else listens, or listens elsewhere, is an error.
func TestWhatListens(t *testing.T) {
	own, ok := ownAddress()
	if !ok {
		t.Log("this machine has no address but loopback: jobs that others can reach are not looked at")
	}
	rows := documentedListeners(t)
	for _, c := range []struct {
		name  string
		nodes int
		args  []string
		agent map[string]string // what listens in the agents of all nodes: where
		rank  map[string]string // and in the ranks
	}{
		{"one node", 1, nil,
			map[string]string{agentStore: "127.0.0.1"}, map[string]string{eachRank: "127.0.0.1"}},
		{"one node with a status page", 1, []string{"--status-addr=:0"},
			map[string]string{agentStore: "127.0.0.1", statusPage: "127.0.0.1"}, map[string]string{eachRank: "127.0.0.1"}},
		{"static nodes on loopback", 2, []string{"--master-addr=127.0.0.1", "--master-port=" + portOf(loopback(t, 1))},
			nil, map[string]string{ranksStore: "127.0.0.1", eachRank: "127.0.0.1"}},
		{"a hosted etcd on loopback", 2, []string{"--rdzv-backend=embedded", "--rdzv-endpoint=" + loopback(t, 1)},
			map[string]string{etcdNodes: "127.0.0.1", agentPeers: "127.0.0.1"}, map[string]string{ranksStore: "127.0.0.1", eachRank: "127.0.0.1"}},
		{"three hosted etcds", 3, []string{"--rdzv-backend=embedded", "--rdzv-endpoint=" + loopback(t, 3)},
			map[string]string{etcdNodes: "127.0.0.1", etcdPeers: "127.0.0.1", agentPeers: "127.0.0.1"}, map[string]string{ranksStore: "127.0.0.1", eachRank: "127.0.0.1"}},
		{"a hosted etcd that others can reach", 2, []string{"--rdzv-backend=embedded", "--rdzv-endpoint=" + net.JoinHostPort(own, portOf(loopback(t, 1))), "--rdzv-token-file=" + tokenFile(t, secretToken)},
			map[string]string{etcdNodes: own, agentPeers: own}, map[string]string{ranksStore: own, eachRank: own}},
	} {
		for what := range c.agent {
			rows[what] = true
		}
		for what := range c.rank {
			rows[what] = true
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if slices.Contains(slices.Collect(maps.Values(c.rank)), "") {
				t.Skip("no address but loopback")
			}
			var nodes []*node
			for rank := range c.nodes {
				args := append([]string{fmt.Sprintf("--nnodes=%d", c.nodes), fmt.Sprintf("--node-rank=%d", rank), "--nproc-per-node=2"}, c.args...)
				nodes = append(nodes, startNode(t, append(args, ranksBinary(t), "holds")...))
			}
			for _, n := range nodes {
				n.expect("holds$")
				n.expect("holds$")
			}
			agents, workers := make(map[string]bool), make(map[string]bool)
			for _, n := range nodes {
				collectListeners(t, n.cmd.Process.Pid, agents)
				for _, pid := range descendants(t, n.cmd.Process.Pid) {
					collectListeners(t, pid, workers)
				}
			}
			if got, want := slices.Sorted(maps.Keys(agents)), addresses(c.agent); !slices.Equal(got, want) {
				t.Errorf("agents listen at %q, want %q", got, want)
			}
			if got, want := slices.Sorted(maps.Keys(workers)), addresses(c.rank); !slices.Equal(got, want) {
				t.Errorf("workers listen at %q, want %q", got, want)
			}
			for _, n := range nodes {
				_ = n.cmd.Process.Kill()
			}
		})
	}
	t.Run("ranks without gorun and a token", func(t *testing.T) {
		host, port, _ := net.SplitHostPort(loopback(t, 1))
		var ranks []*node
		for rank := range 2 {
			ranks = append(ranks, startAs(t, 2*patience, "/usr/bin/env", "env", "GORUN_TOKEN=", "WORLD_SIZE=2", fmt.Sprintf("RANK=%d", rank),
				"MASTER_ADDR="+host, "MASTER_PORT="+port, ranksBinary(t), "holds"))
		}
		listening := make(map[string]bool)
		for _, r := range ranks {
			r.expect("holds$")
		}
		for _, r := range ranks {
			collectListeners(t, r.cmd.Process.Pid, listening)
			_ = r.cmd.Process.Kill()
		}
		if got := slices.Sorted(maps.Keys(listening)); !slices.Equal(got, []string{"127.0.0.1"}) {
			t.Errorf("they listen at %q", got)
		}
	})
	for what, shown := range rows {
		byOthers := strings.HasPrefix(what, "shared memory") || strings.HasPrefix(what, "status and commands of a node") || what == "the token by MUNGE"
		if !shown && !byOthers { // tested in packages acceptor, control and munge (TestStrangers, TestCrowd)
			t.Errorf("docs/security.md says that %q listens: no job here has shown it", what)
		}
	}
}

// addresses are those of what listens, each once.
func addresses(what map[string]string) []string {
	list := slices.Sorted(maps.Values(what))
	return slices.Compact(list)
}

// documentedListeners is the first column of the table, of which nothing has been shown so far.
func documentedListeners(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What listens")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := make(map[string]bool)
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			if what := strings.TrimSpace(cells[1]); what != "what" && !strings.HasPrefix(what, "---") {
				rows[what] = false
			}
		}
	}
	for _, what := range []string{agentStore, etcdNodes, etcdPeers, agentPeers, statusPage, ranksStore, eachRank} {
		if _, ok := rows[what]; !ok {
			t.Fatalf("docs/security.md does not say that %q listens", what)
		}
	}
	return rows
}

// collectListeners adds the addresses at which a process listens on TCP.
func collectListeners(t *testing.T, pid int, at map[string]bool) {
	t.Helper()
	inodes := make(map[string]bool)
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, name := range []string{"tcp", "tcp6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if f := strings.Fields(lines.Text()); len(f) > 9 && f[3] == "0A" && inodes[f[9]] {
				at[kernelAddress(t, f[1])] = true
			}
		}
		_ = file.Close()
	}
}

// kernelAddress reads the address of /proc/net/tcp: words of 32 bits in the machine's order, then the port.
func kernelAddress(t *testing.T, text string) string {
	t.Helper()
	host, _, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr.Unmap().String()
}

// descendants are the processes below a process.
func descendants(t *testing.T, root int) (pids []int) {
	t.Helper()
	children := make(map[int][]int)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		after := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if f := strings.Fields(after); len(f) > 1 {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	var below func(int)
	below = func(pid int) {
		for _, child := range children[pid] {
			pids = append(pids, child)
			below(child)
		}
	}
	below(root)
	return pids
}

// ranksBinary is this test binary, under the name by which it is the worker that links comm.
func ranksBinary(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "ranks")
	if err := os.Symlink(exe, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// ownAddress is one of this machine by which others may reach it.
func ownAddress() (string, bool) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", false
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), true
		}
	}
	return "", false
}

func portOf(endpoint string) string {
	_, port, _ := net.SplitHostPort(endpoint)
	return port
}

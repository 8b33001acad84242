package main

import (
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

	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/env/testing/testkit"
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
				for _, p := range proc.Descendants(proc.All(), func(p proc.Process) bool { return p.Parent == n.cmd.Process.Pid }) {
					collectListeners(t, p.Pid, workers)
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

// collectListeners adds the addresses at which a process listens on TCP, without their ports.
func collectListeners(t *testing.T, pid int, at map[string]bool) {
	t.Helper()
	for _, addr := range listening(t, pid) {
		at[addr.Addr().String()] = true
	}
}

// listening returns the addresses at which a process listens on TCP. There are none if it has ended.
func listening(t *testing.T, pid int) (addrs []netip.AddrPort) {
	t.Helper()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		testkit.Cannot(t, "needs /proc")
	}
	own := make(map[string]bool)
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is right
	for _, fd := range fds {
		to, _ := os.Readlink(fd) // it may be closed by now
		own[to] = true
	}
	for _, family := range []string{"tcp", "tcp6"} {
		table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family)) // there may be no IPv6
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" && own["socket:["+f[9]+"]"] {
				addrs = append(addrs, kernelAddress(t, f[1]))
			}
		}
	}
	return addrs
}

// kernelAddress reads an address of /proc/net/tcp: words of 32 bits in the machine's order, then the port.
func kernelAddress(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
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

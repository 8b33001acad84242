package main

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestAddresses: nodes and ranks of two machines meet, whatever a name means on each.
func TestAddresses(t *testing.T) {
	const v6 = "ip addr flush dev eth0 scope global; ip addr add fd79::$0/64 dev eth0 nodad"
	for name, k := range map[string]struct {
		hosts    [2]string // the hosts file of each machine
		prepare  string    // is run on each; $0 is its number, from 1
		endpoint string
		conf     [2]string
	}{
		"a host's own name is loopback, as on Debian": {
			hosts:    [2]string{"127.0.0.1 localhost\n127.0.1.1 node0\n", "127.0.0.1 localhost\n10.79.0.1 node0\n127.0.1.1 node1\n"},
			endpoint: "node0",
		},
		"IPv6 only": {hosts: [2]string{"::1 localhost\n", "::1 localhost\n"}, prepare: v6, endpoint: "[fd79::1]"},
		"names of IPv6 only, no 127.0.0.1": {
			hosts:    [2]string{"::1 localhost\nfd79::1 node0\n", "::1 localhost\nfd79::1 node0\n"},
			prepare:  v6 + "; ip addr del 127.0.0.1/8 dev lo",
			endpoint: "node0",
		},
		"the first addresses of a name are dead": {
			hosts:    [2]string{"10.79.0.8 node0\n10.79.0.9 node0\n10.79.0.1 node0\n", "10.79.0.8 node0\n10.79.0.9 node0\n10.79.0.1 node0\n"},
			endpoint: "node0",
			conf:     [2]string{"is_host=true", "is_host=false"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			machines := hosttest.NewMachines(t, hosttest.Config{Name: "node0"}, hosttest.Config{Name: "node1"})
			token := tokenFile(t, secretToken)
			var nodes []*node
			for i, m := range machines {
				setNames(t, m, k.hosts[i])
				m.Run(t, "sh", "-c", k.prepare, fmt.Sprint(i+1))
			}
			for i, m := range machines {
				nodes = append(nodes, startOn(t, m, "bench", "-b4", "-e4", "-n1", "-w1", "--nnodes=2", "--nproc-per-node=2",
					"--rdzv-backend=embedded", "--rdzv-endpoint="+k.endpoint, "--rdzv-token-file="+token, "--rdzv-conf="+k.conf[i]))
			}
			for _, n := range nodes {
				n.end(0)
			}
		})
	}
}

// TestNoIPv4: a machine that has only ::1 needs no flag for a job of its own.
func TestNoIPv4(t *testing.T) {
	m := hosttest.NewMachines(t, hosttest.Config{Name: "node0"})[0]
	m.Run(t, "ip", "addr", "del", "127.0.0.1/8", "dev", "lo")
	startOn(t, m, "bench", "-b4", "-e4", "-n1", "-w1", "--nproc-per-node=2").end(0)
}

// TestEtcdMoves: an etcd comes back at another address of its name, and the job goes on.
func TestEtcdMoves(t *testing.T) {
	m := hosttest.NewMachines(t, hosttest.Config{Name: "node0"})[0]
	token, data, wait := tokenFile(t, secretToken), t.TempDir(), newRelease(t)
	serve := func(at string) *node {
		t.Helper()
		setNames(t, m, at+" etcd\n")
		m.Run(t, "ip", "addr", "add", at+"/24", "dev", "eth0")
		etcd := startOn(t, m, "etcd", "--rdzv-endpoint=etcd:2379", "--rdzv-token-file="+token, "--data-dir="+data)
		etcd.expect("serving")
		return etcd
	}
	etcd := serve("10.79.0.100")
	var nodes []*node
	for range 2 {
		nodes = append(nodes, startOn(t, m, "--nnodes=2", "--max-restarts=1", "--rdzv-backend=etcd", "--rdzv-endpoint=etcd:2379", "--rdzv-id=moves",
			"--rdzv-token-file="+token, "sh", "-c", "echo begun; "+wait.await()+"; exit $((1-TORCHELASTIC_RESTART_COUNT))"))
	}
	for _, n := range nodes {
		n.expect("begun")
	}
	_ = etcd.cmd.Process.Kill()
	m.Run(t, "ip", "addr", "del", "10.79.0.100/24", "dev", "eth0")
	etcd = serve("10.79.0.101")
	wait.create(t)
	for _, n := range nodes {
		n.end(0)
	}
	_ = etcd.cmd.Process.Kill()
}

// setNames sets the hosts file of a machine.
func setNames(t *testing.T, m *hosttest.Machine, hosts string) {
	t.Helper()
	m.Run(t, "sh", "-c", `printf %s "$0" >/etc/hosts`, hosts)
}

// startOn starts gorun on a machine.
func startOn(t *testing.T, m *hosttest.Machine, args ...string) *node {
	t.Helper()
	gorun, err := exec.LookPath("gorun")
	if err != nil {
		t.Fatal(err)
	}
	return startBy(t, m.Start, 2*patience, gorun, append([]string{"gorun"}, args...)...)
}

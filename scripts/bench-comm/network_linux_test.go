package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

var (
	networksFlag  = flag.String("networks", "", "the networks on which TestNetworks measures, such as 2x1@1Gbit,8x1@1Gbit+5ms (parseNetwork says all); empty: a small one, for a moment")
	networkChart  = flag.String("network-svg", "", "file for a chart of the first network")
	networkLaunch = flag.String("network-launch", "", "more flags of gorun launch for comm, such as --worker-tls")
	networkFlags  = flag.String("network-flags", "-sizes=64,4K,32K,256K,1M,4M,16M -rounds=3", "flags of bench-comm for these: -ops, -sizes, -rounds, -time")
)

// TestNetworks measures comm, Open MPI and raw sockets between machines: network namespaces that are joined by links of a rate. All share
// this machine's processors. It judges only that there are figures.
func TestNetworks(t *testing.T) {
	t.Parallel()
	networks, flags := *networksFlag, strings.Fields(*networkFlags)
	if networks == "" {
		networks, flags = "2x1@1Gbit+1ms+core=1Gbit+slow-link=0.5Gbit+slow-machine=0.5", []string{"-ops=all_reduce,barrier", "-sizes=64,256K", "-rounds=1", "-time=2ms"}
	}
	o, err := parseFlags(append(flags, "-dirty=no", "-transport=tcp", "-ranks=2"), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	o.together = true // ssh takes longer than to measure
	s, err := newSite(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(networks, ",") {
		n, err := parseNetwork(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) {
			h := n.start(t)
			o.ranks = []int{n.Machines * n.Ranks}
			b := bench{options: o, contenders: n.contenders(t, s), samples: make(samples)}
			b.execute = func(cmd *exec.Cmd) error {
				cmd.Env = append(cmd.Env, "HOME="+hosttest.Home)
				if err := h.Client.Start(cmd); err != nil {
					return err
				}
				return cmd.Wait()
			}
			b.run(t.Context())
			for _, trouble := range b.troubles {
				t.Log(trouble)
			}
			if b.failed > 0 {
				t.Errorf("comm failed in %d launches", b.failed)
			}
			var table strings.Builder
			networkResult{n, b.samples}.print(&table, o.ops, o.sizes)
			t.Logf("%v; the best peer's time by comm's (from 256 KiB, the parts of the link's rate that comm, the peer and raw sockets reach):\n%s", n, &table)
			if *networkChart != "" {
				if err := os.WriteFile(*networkChart, []byte(networkResult{n, b.samples}.chart(o)), 0o644); err != nil {
					t.Fatal(err)
				}
				*networkChart = ""
			}
			for c := range b.samples[oursBetween] {
				if bound := n.bound(c); c.Bytes >= 1<<20 && b.samples.time(oursBetween, c) < bound/2 {
					t.Errorf("%v takes %.0f us, and the link needs %.0f", c, b.samples.time(oursBetween, c), bound)
				}
			}
			if len(b.samples[oursBetween]) == 0 {
				t.Error("no figures")
			}
		})
	}
}

// start boots the machines.
func (n network) start(t *testing.T) *clustertest.Hosts {
	t.Helper()
	if _, err := exec.LookPath("tc"); err != nil {
		testkit.Cannot(t, "links of a rate take the command tc")
	}
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: n.Machines})
	last := n.Machines - 1
	for i, m := range h.List {
		if n.Latency > 0 {
			m.Delay(n.Latency / 2) // there are two links from one machine to another
		}
		rate := n.Rate
		if n.SlowLink > 0 && i == last {
			rate = n.SlowLink
		}
		m.Limit(linkRate(rate))
	}
	if n.Core > 0 {
		h.List[n.Machines/2].Split(linkRate(n.Core))
	}
	if n.SlowMachine > 0 {
		h.List[last].Quota(t, n.SlowMachine)
	}
	return h
}

// linkRate returns a rate in the form of tc, and a burst. What the system hands to a link at once, up to 64 KiB, has to fit into a burst, or each packet
// costs processor time.
func linkRate(rate float64) (text string, burst int) {
	return fmt.Sprintf("%.0fbit", rate), int(max(96<<10, rate/8*200e-6))
}

// contenders are those that have been installed. None binds ranks to processors, since the machines share them.
func (n network) contenders(t *testing.T, s site) []contender {
	var hosts []string
	for i := range n.Machines {
		hosts = append(hosts, fmt.Sprintf("h%d:%d", i+1, n.Ranks))
	}
	list := strings.Join(hosts, ",")
	launched := func(arguments ...string) func(int) []string {
		return func(int) []string {
			return append([]string{s.gorun, "launch", "--hosts=" + list, "--numa-binding=none"}, arguments...)
		}
	}
	ours := slices.Concat(strings.Fields(*networkLaunch), []string{s.self, workerArg, "auto", "slices"})
	all := []contender{{Name: oursBetween, Transport: "tcp", command: launched(ours...)}}
	if lacks("mpirun.openmpi", "mpicc.openmpi")() {
		t.Log("Open MPI is not installed")
		return all
	}
	program, err := s.compile("mpicc.openmpi", "mpi.c", mpiSource)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range peersBetween { // mpi.c says what BENCH_APART is for
		more := [][]string{nil, {"--mca", "coll_han_priority", "100", "-x", "BENCH_APART=1"}}[i]
		all = append(all, contender{Name: name, Transport: "tcp", command: func(int) []string {
			argv := []string{"mpirun.openmpi", "--allow-run-as-root", "-H", list, "--bind-to", "none", "--map-by", "slot", "--oversubscribe", "--mca", "btl", "tcp,vader,self",
				"--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
				"--mca", "btl_vader_single_copy_mechanism", "none"} // with it, Open MPI 4.1.4 crashes on such machines
			if n.Machines*n.Ranks > 2 {
				argv = append(argv, "--mca", "mpi_yield_when_idle", "1")
			}
			return append(append(argv, more...), program)
		}})
	}
	return all
}

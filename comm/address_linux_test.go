package comm

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// A host is a network namespace in which a rank runs.
type host struct {
	hosts string   // its /etc/hosts
	links string   // shell commands that make its interfaces, before those that connect it to the other host
	env   []string // of the rank
}

// onTwoHosts runs the program "silent" on rank 0 and 1, each on a host: two networks connect these, 10.9.0.0/24 on eth0
// and 10.8.0.0/24 on eth1, where they have their rank + 1 for a number.
func onTwoHosts(t *testing.T, hosts [2]host) [2]*rankProcess {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		testkit.Cannot(t, "there is no command ip")
	}
	var ps [2]*rankProcess
	var start [2]io.WriteCloser
	for rank, h := range hosts {
		names := filepath.Join(t.TempDir(), "hosts")
		if err := os.WriteFile(names, []byte("127.0.0.1 localhost\n"+h.hosts), 0o600); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf(`set -e; mount --make-rprivate /; mount --bind %s /etc/hosts; ip link set lo up; %s
			read -r go
			for net in 9 8; do ip addr add 10.$net.0.%d/24 dev eth$((9-net)); ip link set eth$((9-net)) up; done
			exec "$0" </dev/null`, names, h.links, rank+1)
		ps[rank] = startProcessesAs(t, "silent", 1, func(_ int, cmd *exec.Cmd) {
			cmd.Args = []string{"sh", "-c", script, cmd.Path}
			cmd.Path = "/bin/sh"
			cmd.Env = append(cmd.Env, append(h.env, "RANK="+strconv.Itoa(rank), "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=1")...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
			var err error
			if start[rank], err = cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
		})[0]
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", ps[rank].cmd.Process.Pid)) // keeps the network, and its links, if the process ends
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = network.Close() })
	}
	for n := range 2 {
		out, err := exec.Command("ip", "link", "add", fmt.Sprint("eth", n), "netns", strconv.Itoa(ps[0].cmd.Process.Pid), "type", "veth",
			"peer", "name", fmt.Sprint("eth", n), "netns", strconv.Itoa(ps[1].cmd.Process.Pid)).CombinedOutput()
		if err != nil {
			testkit.Cannot(t, "hosts cannot be connected here: %v: %s", err, out)
		}
	}
	for _, s := range start {
		if _, err := fmt.Fprintln(s, "go"); err != nil {
			t.Fatal(err)
		}
	}
	return ps
}

// bridge is a network of containers that is there before any other.
const bridge = "ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up; "

func TestRanksReachEachOther(t *testing.T) {
	const token = "GORUN_TOKEN=a-secret-of-16-bytes-and-more"
	at := func(master string, more ...string) []string {
		return append(more, token, "MASTER_ADDR="+master, "MASTER_PORT=29511")
	}
	open := []string{"GORUN_TOKEN=", "MASTER_ADDR=node0", "MASTER_PORT=29511"}
	meeting := filepath.Join(t.TempDir(), "meeting")
	file := func(more ...string) []string { return at("unused.test", append(more, initFile+"="+meeting)...) }
	for what, c := range map[string]struct {
		hosts [2]host
		want  string // in what rank 0 says; empty: nothing
		fails bool
	}{
		"the master's name is loopback to itself": {hosts: [2]host{
			{"127.0.1.1 node0\n", bridge, at("node0")}, {"10.9.0.1 node0\n", bridge, at("node0")},
		}, want: "took the first"}, // of two networks that are equally good
		"the same, and the address is said": {hosts: [2]host{
			{"127.0.1.1 node0\n", bridge, at("node0", "GORUN_COMM_ADDR=eth0")}, {"10.9.0.1 node0\n", bridge, at("node0")},
		}},
		"the first address of the master's name is dead": {hosts: [2]host{
			{"10.9.0.77 node0\n10.9.0.1 node0\n", "", at("node0", "GORUN_COMM_ADDR=eth0")},
			{"10.9.0.77 node0\n10.9.0.1 node0\n", "", at("node0")},
		}},
		"an address": {hosts: [2]host{
			{"", "", at("10.9.0.1", "GORUN_COMM_ADDR=10.8.0.0/24")}, {"", "", at("10.9.0.1", "GORUN_COMM_ADDR=10.8.0.2")},
		}},
		"by way of a file, beside containers": {hosts: [2]host{{"", bridge, file()}, {"", bridge, file()}}, want: "took the first"},
		"by way of a file, and the network is said": {hosts: [2]host{
			{"", bridge, file("GORUN_COMM_ADDR=10.8.0.0/16")}, {"", bridge, file("GORUN_COMM_ADDR=eth1")},
		}},
		"an address of another machine": {hosts: [2]host{
			{"", "", at("10.9.0.1", "GORUN_COMM_ADDR=10.9.0.7")}, {"", "", at("10.9.0.1", "GORUN_COMM_ADDR=10.9.0.7")},
		}, fails: true, want: "10.9.0.7 is not an address of this machine; this machine has 127.0.0.1 (lo), ::1 (lo), 10.9.0.1 (eth0), 10.8.0.1 (eth1)"},
		"a name that is loopback to the master, and no token": {hosts: [2]host{
			{"127.0.1.1 node0\n", "", open}, {"10.9.0.1 node0\n", "", open},
		}, fails: true, want: "node0 means loopback here, and something else to ranks of other nodes, who need a token"},
	} {
		t.Run(what, func(t *testing.T) {
			for rank, p := range onTwoHosts(t, c.hosts) {
				out, _ := io.ReadAll(p.stdout)
				err, said := p.cmd.Wait(), p.stderr.String()
				if (err != nil) != c.fails || !c.fails && string(out) != "sum 1\n" {
					t.Errorf("rank %d printed %q, ended with %v and said %s", rank, out, err, said)
				}
				if rank == 0 && (!strings.Contains(said, c.want) || c.want == "" && said != "") {
					t.Errorf("rank 0 said %q, want %q", said, c.want)
				}
			}
		})
	}
}

func TestAnAddressThatIsNotThere(t *testing.T) {
	_, err := Init(t.Context(), WithRank(1, 2), WithInitMethod("tcp://127.0.0.1:1"), WithAddress(netip.MustParseAddr("203.0.113.77")))
	if ExitCode(err) != 2 || !strings.Contains(err.Error(), `address "203.0.113.77" (GORUN_COMM_ADDR, or gorun's --local-addr): 203.0.113.77 is not an address of this machine; this machine has `) {
		t.Errorf("got %v", err)
	}
}

// Ranks of a machine without IPv4 meet, and ranks without any loopback address say so, instead of waiting for what
// cannot come.
func TestOddLoopback(t *testing.T) {
	const token, noLoopback = "a-secret-of-16-bytes-and-more", ": this machine does not reach its own loopback address (is the interface lo up?): "
	const onlyIPv6 = "ip link set lo up; ip addr del 127.0.0.1/8 dev lo; "
	names := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(names, []byte("::1 localhost\n127.0.0.1 localhost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		setUp, master, token string
		fails                bool
	}{
		"lo is down":                 {"", "localhost", "", true},
		"lo is down, token":          {"", "127.0.0.1", token, true},
		"lo is down, IPv6":           {"", "::1", token, true},
		"IPv6 only":                  {onlyIPv6, "::1", "", false},
		"IPv6 only, by name":         {onlyIPv6, "localhost", "", false},
		"IPv6 only, by name, token":  {onlyIPv6, "localhost", token, false},
		"IPv6 only, by IPv4 address": {onlyIPv6, "127.0.0.1", token, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("ip"); err != nil {
				testkit.Cannot(t, "there is no command ip")
			}
			p := startProcessesAs(t, "silent", 1, func(_ int, cmd *exec.Cmd) {
				script := fmt.Sprintf(`set -e; mount --make-rprivate /; mount --bind %s /etc/hosts; %s
					for RANK in 0 1; do "$0" & done; wait`, names, c.setUp)
				cmd.Args = []string{"sh", "-c", script, cmd.Path}
				cmd.Path = "/bin/sh"
				cmd.Env = append(cmd.Env, "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR="+c.master, "GORUN_TOKEN="+c.token)
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
			})[0]
			out, _ := io.ReadAll(p.stdout)
			_ = p.cmd.Wait()
			said := p.stderr.String()
			wantOut, wantErrors := "sum 1\nsum 1\n", 0
			if c.fails {
				wantOut, wantErrors = "", 2
			}
			if string(out) != wantOut || strings.Count(said, noLoopback) != wantErrors || strings.Count(said, "\n") != wantErrors {
				t.Errorf("they printed %q and said %q", out, said)
			}
		})
	}
}

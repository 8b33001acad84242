package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/hosttest"
)

// A client is the machine on which gorun launch and the commands about its job run.
type client struct {
	t       *testing.T
	hosts   *clustertest.Hosts
	program string // gorun
	environ []string
	records string // the directory of records there
}

// newClient returns the client of hosts. Each machine gets own directories of sockets: all have the same /tmp.
func newClient(t *testing.T, h *clustertest.Hosts) *client {
	t.Helper()
	program, err := exec.LookPath("gorun")
	if err != nil {
		t.Fatal(err)
	}
	runtime := hosttest.Home + "/runtime"
	h.Client.Run(t, "mkdir", "-m", "700", runtime)
	for _, m := range append(h.List, h.Client) {
		m.Run(t, "sh", "-c", `mkdir -p -m 700 "$0" && mount -t tmpfs -o mode=700 tmpfs "$0"`, fmt.Sprintf("/tmp/gorun-%d", os.Geteuid()))
	}
	return &client{t, h, program, []string{"XDG_RUNTIME_DIR=" + runtime}, runtime + "/gorun"}
}

// launch starts gorun launch.
func (c *client) launch(args ...string) *node {
	c.t.Helper()
	return launchWith(c.t, c.hosts, c.environ, args...)
}

// run runs gorun, and returns what it says and its exit code.
func (c *client) run(args ...string) (string, int) {
	c.t.Helper()
	cmd := c.hosts.Client.Command(c.program, args...)
	cmd.Env = append(cmd.Env, c.environ...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := c.hosts.Client.Start(cmd); err != nil {
		c.t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says how it has ended
	return out.String(), cmd.ProcessState.ExitCode()
}

// want runs gorun, and wants an exit code and what it says.
func (c *client) want(code int, pattern string, args ...string) string {
	c.t.Helper()
	out, got := c.run(args...)
	if got != code || !regexp.MustCompile(pattern).MatchString(out) {
		c.t.Errorf("gorun %s: exit code %d, want %d and %q in\n%s", strings.Join(args, " "), got, code, pattern, out)
	}
	return out
}

// TestLaunchedJob: commands on the machine of gorun launch see and steer its job, and nothing is left of that when it has ended.
func TestLaunchedJob(t *testing.T) {
	t.Parallel()
	const worker = "sleep 9755"
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 2})
	c := newClient(t, h)
	want, dir := c.want, c.records
	start := func(id string) *node {
		t.Helper()
		n := c.launch("--hosts=h[1-2]:2", "--rdzv-id="+id, "sh", "-c", "echo ready; exec "+worker)
		for range 4 {
			n.expect("ready")
		}
		return n
	}
	nothing := func() {
		t.Helper()
		if out := want(0, `^JOB[^\n]*\n$`, "ps"); strings.Contains(out, "train") {
			t.Errorf("%s", out)
		}
		if left := h.Client.Run(t, "ls", "-A", dir); left != "" {
			t.Errorf("left in %s: %s", dir, left)
		}
	}

	n := start("train")
	if mode := h.Client.Run(t, "sh", "-c", `stat -c %a "$0" "$0"/*`, dir); mode != "700\n600" {
		t.Errorf("modes: %s", mode)
	}
	token := regexp.MustCompile(`"token":"([0-9a-f]{64})"`).FindStringSubmatch(h.Client.Run(t, "sh", "-c", `cat "$0"/*.job`, dir))
	if len(token) != 2 {
		t.Fatal("the record has no token")
	}
	all := want(0, `(?s)train +h1 .*0 of 2 .*0-1 of 4 .*running.*train +h2 .*1 of 2 .*2-3 of 4 .*running`, "ps")
	for _, args := range [][]string{{"status"}, {"status", "train"}, {"status", "--json", "train"}} {
		all += want(0, `(?s)h1.*h2`, args...)
	}
	want(0, `(?s)\[\d\] ready.*\[\d\] ready.*\[\d\] ready.*\[\d\] ready`, "logs", "train")
	want(0, `rank 3 .*on h2: `, "stacks", "train")
	want(0, `job train is starting another round on h`, "restart", "train")
	for range 4 {
		n.expect("ready")
	}
	want(2, `no job "another" runs here, only: train`, "status", "another")
	want(2, `which job\?`, "stop")
	if lines := h.Client.Run(t, "sh", "-c", `cat /proc/[0-9]*/cmdline | tr '\0' ' '`); strings.Contains(lines+all, token[1]) {
		t.Error("the token is shown")
	}
	want(0, `(?s)job train is stopping on h1.*job train is stopping on h2`, "stop", "train")
	if out := n.end(143); strings.Contains(out, token[1]) || strings.Contains(out, "no record") {
		t.Errorf("%s", out)
	}
	nothing()
	awaitNothing(t, worker, h.List...)

	n = start("cut")
	h.List[0].Cut()
	want(2, `^gorun status: job cut: [^\n]*; if this machine does not reach that address, run the command on a host of the job\n$`, "status", "cut")
	want(0, `cut .*if this machine does not reach that address`, "ps")
	h.List[0].Heal()
	want(0, `h1`, "status", "cut")
	h.Client.Run(t, "sh", "-c", `chmod 644 "$0"/*.job`, dir)
	want(2, `^gorun status: gorun with pid \d+ does not say its job: .*\.job can be used by other users: remove it\n$`, "status", "cut")
	h.Client.Run(t, "sh", "-c", `chmod 600 "$0"/*.job`, dir)
	n.signal(syscall.SIGKILL)
	n.end(-1)
	if left := h.Client.Run(t, "ls", dir); !strings.HasSuffix(left, "-cut.job") {
		t.Errorf("of a launcher that was killed, there is %q", left)
	}
	nothing()
	awaitNothing(t, worker, h.List...)
}

// TestLaunchedHere: a job whose agents have sockets on this machine is not listed twice.
func TestLaunchedHere(t *testing.T) {
	t.Parallel()
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 1})
	c := newClient(t, h)
	release := newRelease(t)
	for hosts, count := range map[string]int{"localhost": 1, "h1": 0, "localhost,h1": 2, "localhost,h1 --rdzv-backend=static": 1} {
		n := c.launch(append(strings.Fields("--hosts="+hosts), "sh", "-c", "echo ready; "+release.await())...)
		for range strings.Count(hosts, ",") + 1 {
			n.expect("ready")
		}
		var out string
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) { // a socket comes while the job starts
			if out, _ = c.run("ps"); strings.Count(out, " running ") == count {
				break
			}
		}
		if strings.Count(out, " running ") != count || strings.Count(out, "\n") != 1+count {
			t.Errorf("--hosts=%s: want %d nodes in\n%s", hosts, count, out)
		}
		release.create(t)
		n.end(0)
		if err := os.Remove(string(release)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLaunchedDrain: gorun scale and gorun drain on the machine of gorun launch, which goes on with fewer hosts than its job had at first.
func TestLaunchedDrain(t *testing.T) {
	t.Parallel()
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 3})
	c := newClient(t, h)
	want, release := c.want, newRelease(t)
	n := c.launch("--hosts=h[1-3]", "--rdzv-id=train", "sh", "-c", "echo ready $WORLD_SIZE; "+release.await())
	for range 3 {
		n.expect("ready 3")
	}
	want(2, `^gorun drain: job train on h3: the job has 3 nodes and needs at least 3: without this node it would end; --force ends it\n$`, "drain", "train", "h3")
	want(0, `^job train may have 1 to 3 nodes from now on: recorded by h\d \(pid \d+\)\n$`, "scale", "train", "1:3")
	want(2, `^gorun drain: job train on h1: it hosts the etcd`, "drain", "train", "h1")
	want(0, `^job train goes on without the node on h3 \(pid \d+\)\n$`, "drain", "train", "h3")
	for range 2 {
		n.expect("ready 2")
	}
	want(0, `^job train may have 1 to 1 nodes from now on`, "scale", "train", "1:1")
	n.expect("ready 1")
	release.create(t)
	if out := n.end(0); !strings.Contains(out, "host h3 has left the job after gorun drain; going on with the others") {
		t.Errorf("%s", out)
	}
}

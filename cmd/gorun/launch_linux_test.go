package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	version "github.com/gorun/gorun/cmd/gorun/internal/release"
	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// launch starts gorun launch on the client of hosts. --remote-path is this test's gorun.
func launch(t *testing.T, h *clustertest.Hosts, args ...string) *node {
	t.Helper()
	return launchWith(t, h, nil, args...)
}

// launchWith does that with more variables.
func launchWith(t *testing.T, h *clustertest.Hosts, environ []string, args ...string) *node {
	t.Helper()
	gorun, err := exec.LookPath("gorun")
	if err != nil {
		t.Fatal(err)
	}
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	return startBy(t, h.Client.Start, 2*patience, env, slices.Concat([]string{"env"}, environ, []string{"HOME=" + hosttest.Home}, []string{gorun, "launch"}, args)...)
}

// left returns the command lines of gorun and of workers on a host.
func left(t *testing.T, m *hosttest.Machine, worker string) string {
	t.Helper()
	return m.Run(t, "sh", "-c", `for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null; echo; done | grep -e "[g]orun" -e "$0" | grep -v 'for p in'; true`, worker)
}

// awaitNothing waits until no process of gorun and no worker is left on any of the hosts.
func awaitNothing(t *testing.T, worker string, hosts ...*hosttest.Machine) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for _, m := range hosts {
		found := left(t, m, worker)
		for ; found != "" && time.Now().Before(deadline); found = left(t, m, worker) {
			time.Sleep(20 * time.Millisecond) // nobody tells
		}
		if found != "" {
			t.Errorf("left on %s:\n%s", m.Name, found)
		}
	}
}

// killProcess sends a signal to the processes on a host whose command lines match.
func killProcess(t *testing.T, m *hosttest.Machine, sig, pattern string) {
	t.Helper()
	m.Run(t, "sh", "-c", `kill -$0 $(for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline | grep -q "$1" && basename $p; done)`, sig, pattern)
}

// shellArgs are arguments that some shell would change.
var shellArgs = []string{"", " ", "!x", "a b", "$HOME", "`id`", "'", `"`, `\`, `\n`, "*", "~", "{a,b}", "\xff\xfe", "-x", "%self", "a\nb", "^x", "!!", "?", "#"}

// TestLaunchShells: no login shell changes an argument, a variable or what goes through stdin and stdout.
func TestLaunchShells(t *testing.T) {
	t.Parallel()
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 4, Shells: []string{"sh", "bash", "tcsh", "fish"}})
	// The noise of a login shell comes before gorun.
	for _, i := range []int{1, 2, 3} {
		h.List[i].Run(t, "sh", "-c", `mkdir -p ~/.config/fish; for f in .bashrc .tcshrc .config/fish/config.fish; do echo "echo Welcome to $(hostname)" >~/$f; done`)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "worker")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n{ printf '%s\\0' \"$@\"; printf '%s\\0' \"$GORUN_X\" \"$(pwd)\"; cat; } >"+dir+"/got.$RANK\necho rank $RANK of $WORLD_SIZE on $(hostname)\necho oops >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := launchWith(t, h, []string{"GORUN_X=a 'b' $c\n!d"}, append([]string{"--hosts", "h[1-4]", script}, shellArgs...)...)
	out := n.end(0)
	for i := range 4 {
		if want := fmt.Sprintf("[%d] rank %d of 4 on h%d\n", i, i, i+1); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("got.", i)))
		wd, _ := os.Getwd()
		if want := strings.Join(shellArgs, "\x00") + "\x00a 'b' $c\n!d\x00" + wd + "\x00"; err != nil || string(got) != want {
			t.Errorf("rank %d got %q, %v, want %q", i, got, err, want)
		}
	}
	if strings.Contains(out, "Welcome") {
		t.Errorf("noise of the shells:\n%s", out)
	}
}

// TestLaunchEnds: however the launcher, a host or the link ends, nothing is left on any host.
func TestLaunchEnds(t *testing.T) {
	t.Parallel()
	const worker = "sleep 9753"
	for name, c := range map[string]struct {
		do   func(h *clustertest.Hosts, n *node)
		code int
		says string
	}{
		"interrupt":       {func(_ *clustertest.Hosts, n *node) { n.signal(syscall.SIGINT) }, 130, "gorun: stopped by signal 2 (SIGINT)"},
		"killed launcher": {func(_ *clustertest.Hosts, n *node) { n.signal(syscall.SIGKILL) }, -1, ""},
		"dead host":       {func(h *clustertest.Hosts, _ *node) { h.List[2].Kill() }, 1, "gorun: host h3: running the job: the host is lost: the connection has ended"},
		"cut host":        {func(h *clustertest.Hosts, _ *node) { h.List[2].Cut() }, 1, "gorun: host h3: running the job: the host is lost: no sign of life for 5s"},
		"killed agent": {func(h *clustertest.Hosts, _ *node) {
			killProcess(t, h.List[1], "KILL", "gorun agent $")
		}, 1, "gorun: host h2: running the job: the host is lost: the connection has ended"},
		"killed node": {func(h *clustertest.Hosts, _ *node) {
			killProcess(t, h.List[1], "KILL", "^gorun launched-node")
		}, 137, "gorun: host h2: gorun has died (signal: killed)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 3})
			n := launch(t, h, "--heartbeat-timeout=5", "--hosts=h[1-3]:2", "sh", "-c", "echo ready; exec "+worker)
			for range 6 {
				n.expect("ready")
			}
			if found := left(t, h.List[0], worker); strings.Count(found, worker) < 2 || !strings.Contains(found, "gorun agent") {
				t.Errorf("before the end, there is only\n%s", found)
			}
			c.do(h, n)
			if out := n.end(c.code); !strings.Contains(out, c.says) || strings.Count(out, "gorun: ") > 1+strings.Count(out, "[WARN]") {
				t.Errorf("want one line %q in\n%s", c.says, out)
			}
			hosts := h.List
			if name == "dead host" {
				hosts = hosts[:2]
			}
			awaitNothing(t, worker, hosts...)
		})
	}
}

// TestLaunchElastic: a job that can do without a host goes on when it is lost.
func TestLaunchElastic(t *testing.T) {
	t.Parallel()
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 4})
	release := newRelease(t)
	n := launch(t, h, "--heartbeat-timeout=5", "--nnodes=3:4", "--rdzv-conf=last_call_timeout=1", "--hosts=h[1-4]", "sh", "-c", "echo ready $WORLD_SIZE; "+release.await())
	for range 4 {
		n.expect("ready 4")
	}
	h.List[3].Kill()
	// The agents of the others may notice before ssh does.
	n.expectAll("host h4: running the job: the host is lost: .*; going on with the others", "ready 3", "ready 3", "ready 3")
	release.create(t)
	n.end(0)
}

// TestLaunchBadHosts: a host that cannot be used is named in one line, with what to do, and the others are stopped.
func TestLaunchBadHosts(t *testing.T) {
	t.Parallel()
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 4, Shells: []string{"sh", "bash", "tcsh", "fish"}})
	dir := t.TempDir()
	for name, script := range map[string]string{
		"older":  `printf '\001gorun-agent {"protocol":1,"version":"0.0.9"}\n'; exec cat >/dev/null`,
		"newer":  `printf '\001gorun-agent {"protocol":3,"version":"0.9.0"}\n'; exec cat >/dev/null`,
		"same":   `printf '\001gorun-agent {"protocol":1,"version":"` + version.Version + `"}\n'; exec cat >/dev/null`,
		"crash":  `echo "cannot load libc" >&2; exit 3`,
		"silent": `exec sleep 60`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.List[3].Cut()
	h.List[2].Kill()
	h.List[2].Boot(t)
	h.Client.Run(t, "sh", "-c", "mkdir ~/here; printf '%s\n' 'Host nobody' 'HostName h2' 'User nobody' 'Host stranger' 'HostName h2' 'HostKeyAlias stranger' >~/.ssh/config")
	cases := []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no such host", []string{"--hosts=h1,nowhere.invalid"}, 75, "host nowhere.invalid: connecting: ssh: Could not resolve hostname nowhere.invalid: .*: correct the name, or add it to ~/.ssh/config"},
		{"refused", []string{"--hosts=h1,h3"}, 75, "host h3: connecting: ssh: connect to host h3 port 22: Connection refused: start an sshd there, or correct the port"},
		{"silent host", []string{"--hosts=h1,h4", "--connect-timeout=20"}, 75, "host h4: connecting: (ssh: connect to host h4 port 22: Connection timed out: check that the host is up, and the firewall|ssh: connect to host h4 port 22: No route to host: check that the host is up, and the network|no answer within 20s: .*)"},
		{"password", []string{"--hosts=h1,nobody"}, 2, "host nobody: connecting: nobody@h2: Permission denied \\(publickey\\).: gorun does not ask for passwords: let ssh log in with a key \\(ssh-copy-id, ssh-agent\\)"},
		{"unknown key", []string{"--hosts=h1,stranger"}, 2, "host stranger: connecting: Host key verification failed.: check the host's key and accept it once: run ssh stranger true"},
		{"no gorun, sh", []string{"--hosts=h1", "--remote-path=/opt/gorun"}, 2, "host h1: starting gorun: no gorun at /opt/gorun there: install it, say where it is with --remote-path, or let --copy copy it"},
		{"no gorun, bash", []string{"--hosts=h2", "--remote-path=/opt/gorun"}, 2, "host h2: starting gorun: no gorun at /opt/gorun there: .*"},
		{"older", []string{"--hosts=h1", "--remote-path=" + dir + "/older"}, 2, "host h1: starting gorun: .*/older there is gorun 0.0.9, and this is .*: install the same version, name another one with --remote-path, or let --copy copy this one"},
		{"newer", []string{"--hosts=h1", "--remote-path=" + dir + "/newer"}, 2, "host h1: starting gorun: .*/newer there is gorun 0.9.0, and this is .*"},
		{"same", []string{"--hosts=h1", "--remote-path=" + dir + "/same"}, 2, `host h1: starting gorun: .*/same there is gorun \S+ \(protocol 1\), and this is \S+ \(protocol \d+\): install the same version, .*`},
		{"crash", []string{"--hosts=h2", "--remote-path=" + dir + "/crash"}, 2, `host h2: starting gorun: .*/crash ended with exit code 3 before it said anything; on stderr: "cannot load libc"`},
		{"no agent", []string{"--hosts=h2", "--remote-path=/bin/echo"}, 2, `host h2: starting gorun: /bin/echo is no gorun of this version; on stdout: "agent"`},
		{"silent agent", []string{"--hosts=h2", "--connect-timeout=6", "--remote-path=" + dir + "/silent"}, 75, "host h2: connecting: no answer within 6s: check that it is up, and that ssh runs a command there without a question, or give it longer with --connect-timeout"},
		{"no directory", []string{"CHDIR", "--hosts=h1,h2"}, 2, `host h[12]: no directory "/run/home/here": create it, or give another one with --wdir.*`},
		{"no program", []string{"--hosts=h1,h2", "--no-python"}, 127, `host h[12]: ./nothing: no such program.*`},
	}
	var nodes []*node
	for _, c := range cases { // at the same time
		var environ []string
		if c.args[0] == "CHDIR" {
			environ, c.args = []string{"--chdir=" + hosttest.Home + "/here"}, c.args[1:]
		}
		program := []string{"sh", "-c", "sleep 9751"}
		if c.name == "no program" {
			program = []string{"./nothing"}
		}
		nodes = append(nodes, launchWith(t, h, environ, append(c.args, program...)...))
	}
	for i, c := range cases {
		out := nodes[i].end(c.code)
		if !regexp.MustCompile(`(?m)^gorun: `+c.says+"$").MatchString(out) || strings.Count(out, "\n") != 1+strings.Count(out, "[WARN]")+strings.Count(out, "[INFO]") {
			t.Errorf("%s: want the line\ngorun: %s\nand got\n%s", c.name, c.says, out)
		}
	}
	awaitNothing(t, "sleep 9751", h.List[:2]...)
}

// TestLaunchCopy: a host without gorun gets this one, whatever its login shell is, and only once, unless the copy is damaged.
func TestLaunchCopy(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "takes 10 s and more")
	h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: 4, Shells: []string{"sh", "bash", "tcsh", "fish"}})
	for turn := range 2 {
		n := launch(t, h, "--copy", "--hosts=h[1-4]", "sh", "-c", "echo rank $RANK")
		out := n.end(0)
		for i := range 4 {
			if !strings.Contains(out, fmt.Sprintf("[%d] rank %d\n", i, i)) {
				t.Errorf("turn %d: nothing of rank %d in\n%s", turn, i, out)
			}
		}
		for _, m := range h.List {
			files := m.Run(t, "sh", "-c", "cd ~/.cache/gorun && stat -c '%A %n' */* && test $(stat -c %Y */gorun) -gt 1 && touch -d @1 */gorun || echo the same")
			want := regexp.MustCompile(`^-rwxr-xr-x [^ /]+-[0-9a-f]{16}/gorun` + []string{"", "\nthe same"}[turn] + "$")
			if !want.MatchString(files) {
				t.Errorf("turn %d: %s has %q", turn, m.Name, files)
			}
		}
	}
	for _, damage := range []string{": >$f", "truncate -s 100000 $f"} { // as a power failure may leave it
		for _, m := range h.List {
			m.Run(t, "sh", "-c", "f=$(echo ~/.cache/gorun/*/gorun); "+damage)
		}
		if out := launch(t, h, "--copy", "--hosts=h[1-4]", "sh", "-c", "echo rank $RANK").end(0); strings.Count(out, "] rank ") != 4 {
			t.Errorf("after %s:\n%s", damage, out)
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/gorun/gorun/env/testing/hosttest"
	"github.com/gorun/gorun/env/testing/testkit"
)

// readUnit reads the unit of docs/clusters.
func readUnit(t *testing.T) (text string, settings map[string]string) {
	t.Helper()
	file, err := os.ReadFile("../../docs/clusters/gorun.service")
	if err != nil {
		t.Fatal(err)
	}
	options, err := unit.DeserializeOptions(strings.NewReader(string(file)))
	if err != nil {
		t.Fatal(err)
	}
	settings = make(map[string]string)
	for _, o := range options {
		settings[o.Name] = o.Value
	}
	return string(file), settings
}

// TestSystemdUnitFits: gorun takes the unit's command, whose times are those of the unit, and systemd takes the rest.
func TestSystemdUnitFits(t *testing.T) {
	t.Parallel()
	text, settings := readUnit(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := strings.Fields(strings.ReplaceAll(settings["ExecStart"], "${CREDENTIALS_DIRECTORY}", dir))
	gorun := exec.CommandContext(t.Context(), "gorun", append([]string{"--dry-run"}, command[1:len(command)-1]...)...)
	gorun.Args = append(gorun.Args, "true") // instead of a program that is not here
	if out, err := gorun.CombinedOutput(); err != nil {
		t.Errorf("gorun does not take %q: %v\n%s", command, err, out)
	}

	seconds := func(name string) time.Duration {
		d, err := time.ParseDuration(strings.ReplaceAll(settings[name], "min", "m"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return d
	}
	i := slices.IndexFunc(command, func(arg string) bool { return strings.HasPrefix(arg, "--shutdown-timeout=") })
	if i < 0 {
		t.Fatalf("no --shutdown-timeout in %q", command)
	}
	shutdown, err := time.ParseDuration(strings.TrimPrefix(command[i], "--shutdown-timeout=") + "s")
	if stop := seconds("TimeoutStopSec"); err != nil || stop < shutdown+time.Minute {
		t.Errorf("systemd kills gorun after %v, and gorun its workers after %v (%v)", stop, shutdown, err)
	}
	if start := seconds("TimeoutStartSec"); start <= 10*time.Minute {
		t.Errorf("systemd ends gorun after %v, and gorun waits for 10 minutes", start)
	}
	final := strings.Fields(settings["RestartPreventExitStatus"])
	for code, restarts := range map[string]bool{"1": true, "2": false, "71": true, "75": true, "93": false, "124": false, "126": false, "127": false, "137": true} {
		if restarts == slices.Contains(final, code) {
			t.Errorf("after exit code %s, restart is %t", code, !restarts)
		}
	}

	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		testkit.Cannot(t, "no systemd-analyze: apt-get install systemd")
	}
	file := filepath.Join(dir, "gorun.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, command[0], gorun.Path)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// trainee is a worker that says each SIGTERM, and then ends, unless it is the last worker of node1. It starts a process in a session of its own.
const trainee = `
import os, signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
if os.fork() == 0:
    os.setsid()
    while True:
        signal.pause()
print('ready as', os.getuid(), os.environ.get('NOTIFY_SOCKET', 'without a socket'), flush=True)
while True:
    got = signal.sigwaitinfo([signal.SIGTERM])
    print('SIGTERM from', 'its guard' if got.si_pid == os.getppid() else 'elsewhere', flush=True)
    if (socket.gethostname(), os.environ['LOCAL_RANK']) != ('node1', '1'): # which node has which ranks is not said
        sys.exit(128 + signal.SIGTERM)
`

// bootSystemd starts systemd on a machine, as for a user who logs in, with control groups below $1.
const bootSystemd = `
mount --make-rshared / # systemd gives a service its credentials by a mount
mkdir -p /run/systemd/system # the machine runs systemd
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
	[ ! -e $hierarchy/cgroup.procs ] || { mkdir -p $hierarchy/$1 && echo $$ >$hierarchy/$1/cgroup.procs; }
done
exec /lib/systemd/systemd --user --unit=basic.target`

// A service is the unit of docs/clusters on a machine.
type service struct {
	*hosttest.Machine
	output string // a file
}

// newService starts systemd. files are the unit and what changes it, by name.
func newService(t *testing.T, m *hosttest.Machine, output string, files map[string]string) *service {
	t.Helper()
	config := t.TempDir()
	for name, text := range files {
		name = filepath.Join(config, "systemd", "user", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	group := fmt.Sprintf("gorun-test-%d-%s", os.Getpid(), m.Name)
	t.Cleanup(func() {
		m.Kill()
		const remove = `for i in $(seq 50); do find /sys/fs/cgroup -depth -type d -path "*/$1*" -exec rmdir {} + && exit; sleep 0.1; done`
		if out, err := exec.Command("sh", "-c", remove+" 2>/dev/null; exit 1", "sh", group).CombinedOutput(); err != nil {
			t.Errorf("the control groups of %s stay: %v\n%s", m.Name, err, out)
		}
	})
	s := &service{m, output}
	systemd := m.Command("sh", "-c", bootSystemd, "sh", group)
	systemd.Env = append(systemd.Env, "XDG_RUNTIME_DIR=/run", "XDG_CONFIG_HOME="+config)
	m.StartDaemon(t, systemd)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, err := s.systemctl("is-system-running", "--wait")
		if err == nil {
			m.Run(t, "chmod", "777", "/run/systemd", "/run/systemd/notify") // as the system's own has it, for services of all users
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("systemd does not start: %v\n%s", err, said)
		}
	}
}

// systemctl runs systemctl, and returns what it says.
func (s *service) systemctl(args ...string) (string, error) {
	cmd := s.Command("timeout", append([]string{"60", "systemctl", "--user"}, args...)...)
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR=/run")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := s.Start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return strings.TrimSpace(said.String()), err
}

// await waits until a property of the unit has a value, or begins with it.
func (s *service) await(t *testing.T, property, want string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, err := s.systemctl("show", "--value", "--property="+property, "gorun")
		if err == nil && strings.HasPrefix(said, want) {
			return
		}
		if time.Now().After(deadline) {
			output, _ := os.ReadFile(s.output)
			t.Fatalf("on %s, %s is %q (%v), want %q\n%s", s.Name, property, said, err, want, output)
		}
	}
}

// wantNothingLeft wants no process of the job on the machine.
func (s *service) wantNothingLeft(t *testing.T) {
	t.Helper()
	if left := s.Run(t, "find", "/proc", "-maxdepth", "1", "-user", "nobody"); left != "" {
		t.Errorf("on %s there are still\n%s", s.Name, left)
	}
}

// TestSystemdUnit: systemd runs the unit that docs/clusters has to copy, on two machines.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "starts a service five times")
	hosttest.Need(t, "/lib/systemd/systemd", "systemd")
	machines := hosttest.NewMachines(t, hosttest.Config{Name: "node0"}, hosttest.Config{Name: "node1"})
	dir, err := os.MkdirTemp("", "unit") //nolint:usetesting // another user could not enter t.TempDir
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chown(dir, 65534, 65534) // nobody
	}
	gorun, missing := exec.LookPath("gorun")
	if err := errors.Join(err, missing); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(gorun)
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for name, text := range map[string][]byte{"bin/gorun": binary, "token": []byte("0123456789abcdef0123456789abcdef\n"), "train.py": []byte(trainee)} {
		mode := map[string]os.FileMode{"bin/gorun": 0o755, "token": 0o600, "train.py": 0o644}[name]
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, mode)); err != nil {
			t.Fatal(err)
		}
	}
	text, _ := readUnit(t)
	for old, new := range map[string]string{
		"User=train": "User=nobody", "=/srv/train": "=" + dir, ":/etc/gorun/": ":" + dir + "/", "=/usr/local/bin/": "=" + dir + "/bin/",
		"--nproc-per-node=8": "--nproc-per-node=2",
	} {
		if strings.Count(text, old) != 1 {
			t.Fatalf("the unit does not have %q once", old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	var services []*service
	for i, m := range machines {
		output := filepath.Join(dir, m.Name)
		change := "[Service]\nRestartSec=100ms\nStandardOutput=append:" + output + "\nStandardError=append:" + output +
			"\nEnvironment=XDG_RUNTIME_DIR=" + dir + " OMP_NUM_THREADS=1 " + raceExitsAtOnce + "\n"
		if i == 1 {
			change += "TimeoutStopSec=3s\n" // its last worker does not end by SIGTERM
		}
		services = append(services, newService(t, m, output, map[string]string{"gorun.service": text, "gorun.service.d/test.conf": change}))
	}
	both := func(args ...string) {
		var done sync.WaitGroup
		for _, s := range services {
			done.Go(func() {
				if said, err := s.systemctl(args...); err != nil {
					t.Errorf("on %s, systemctl %s: %v\n%s", s.Name, args, err, said)
				}
			})
		}
		done.Wait()
	}

	both("start", "gorun") // returns when the workers of both run
	for _, s := range services {
		s.await(t, "StatusText", "running: round 1 of 2 nodes and 4 ranks")
		awaitOutput(t, s.output, "ready as 65534 without a socket\n", 2)
	}

	// gorun is killed: nothing of it stays, systemd starts it again, and the workers of the other machine as well begin again.
	if said, err := services[1].systemctl("kill", "--kill-who=main", "--signal=KILL", "gorun"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	services[1].await(t, "NRestarts", "1")
	for _, s := range services {
		s.await(t, "StatusText", "running: round 2 of 2 nodes and 4 ranks")
		awaitOutput(t, s.output, "ready as 65534 without a socket\n", 4)
	}
	if left := services[1].Run(t, "sh", "-c", "grep -la 'pytho[n]3' /proc/[0-9]*/cmdline"); strings.Count(left, "/proc/") != 4 { // with those that workers have started
		t.Errorf("on node1 there are %s, want 4", strings.Fields(left))
	}

	// systemctl stop: gorun gets SIGTERM, and each worker gets it once, from its guard. systemd kills what stays.
	both("stop", "gorun")
	services[0].await(t, "ActiveState", "inactive")
	services[1].await(t, "Result", "timeout")
	for i, s := range services {
		s.wantNothingLeft(t)
		said, err := os.ReadFile(s.output)
		if n := strings.Count(string(said), "SIGTERM from its guard\n"); err != nil || n != []int{4, 2}[i] || strings.Contains(string(said), "SIGTERM from elsewhere") {
			t.Errorf("%d workers on %s got SIGTERM from their guards (%v):\n%s", n, s.Name, err, said)
		}
	}

	// A program that is not there: systemd does not try again.
	if err := os.Remove(filepath.Join(dir, "train.py")); err != nil {
		t.Fatal(err)
	}
	if said, err := services[0].systemctl("start", "gorun"); err == nil {
		t.Errorf("it has started: %s", said)
	}
	services[0].await(t, "ActiveState", "failed")
	services[0].await(t, "ExecMainStatus", "127")
	services[0].await(t, "NRestarts", "0")
}

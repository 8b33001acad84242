package hosttest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Home is the home directory of root on a Machine. It is empty when the machine boots.
const Home = "/run/home"

// A Machine is a host that has its own name, processes, hosts file and root's home besides its network. It shares all other files with
// the test, /tmp among them. All its processes are killed when the test or its process ends. Goroutines must not share it.
type Machine struct {
	Config
	Addr string

	network *Network
	number  int
	hosts   string // the hosts file
	init    *exec.Cmd
	inside  *Host // a thread on the machine; nil: it has been killed
	mu      sync.Mutex
	started []int // pidfds of what Start has started; guarded by mu, because tests of one machine run side by side
	daemons sync.WaitGroup
}

// A Config says what differs between machines.
type Config struct {
	Name  string
	Shell string // the login shell of root; empty: /bin/sh
}

// NewMachines boots machines, which know each other by their names. Without root, the test is skipped.
func NewMachines(t testing.TB, configs ...Config) []*Machine {
	t.Helper()
	if os.Geteuid() != 0 {
		testkit.Cannot(t, "machines of their own take root")
	}
	w := New(t, len(configs))
	hosts := "127.0.0.1 localhost\n"
	for i, c := range configs {
		hosts += w.Host(i).Addr + " " + c.Name + "\n"
	}
	list := make([]*Machine, len(configs))
	for i, c := range configs {
		if c.Shell == "" {
			c.Shell = "/bin/sh"
		}
		list[i] = &Machine{Config: c, Addr: w.Host(i).Addr, network: w, number: i, hosts: hosts}
		list[i].Boot(t)
		t.Cleanup(list[i].Kill)
	}
	return list
}

// boot is the first process of a machine. It reaps all others, because it ignores SIGCHLD.
const boot = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -m 755 /run/sshd
mkdir -m 700 ` + Home + `
hostname "$1"
printf %s "$2" >/run/hosts
mount --bind /run/hosts /etc/hosts
awk -F: -v OFS=: -v shell="$3" '$3 == 0 { $6 = "` + Home + `"; $7 = shell } 1' /etc/passwd >/run/passwd
mount --bind /run/passwd /etc/passwd
echo booted
trap '' CHLD
exec sleep infinity`

// Boot boots a machine that has been killed.
func (m *Machine) Boot(t testing.TB) {
	t.Helper()
	init := exec.Command("sh", "-c", boot, "sh", m.Name, m.hosts, m.Shell)
	init.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS}
	var complaint strings.Builder
	init.Stderr = &complaint
	stdout, err := init.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.network.Host(m.number).Do(func() { err = init.Start() })
	if err != nil {
		testkit.Cannot(t, "a machine cannot be made: %v", err)
	}
	if !bufio.NewScanner(stdout).Scan() {
		err := init.Wait()
		t.Fatalf("%s does not boot: %v: %s", m.Name, err, strings.TrimSpace(complaint.String()))
	}
	m.init = init
	if m.inside, err = enter(init.Process.Pid); err != nil {
		_, _ = init.Process.Kill(), init.Wait()
		t.Fatalf("cannot enter %s: %v", m.Name, err)
	}
}

// enter starts a thread in the namespaces of a process, whose children are there too.
func enter(pid int) (*Host, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	h := &Host{calls: make(chan func())}
	entered := make(chan error)
	goOnThread(func() {
		h.thread = unix.Gettid()
		err := errors.Join(
			unix.Unshare(unix.CLONE_FS), // or the mounts are those of the whole process
			unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWUTS|unix.CLONE_NEWNS|unix.CLONE_NEWPID),
			unix.Chdir(dir),
		)
		if entered <- err; err != nil {
			return
		}
		for f := range h.calls {
			f()
		}
	})
	return h, <-entered
}

// Kill kills all processes of the machine at once, and returns when those that Start has started have ended. The kernel closes their
// connections; if the machine has been cut off, nobody hears of that, as after a power failure.
func (m *Machine) Kill() {
	if m.inside == nil {
		return
	}
	close(m.inside.calls)
	m.inside = nil
	_ = m.init.Process.Kill() // an error says that it has ended
	for _, fd := range m.started {
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_ = unix.Close(fd)
	}
	m.started = nil
	m.daemons.Wait()
	go func(init *exec.Cmd) { _ = init.Wait() }(m.init) // it ends when somebody has waited for each of the others
}

// Do calls f, which must not end the test, on the machine, as Host.Do does. Files are those of the machine.
func (m *Machine) Do(f func()) error {
	if m.inside == nil {
		return fmt.Errorf("%s has been killed", m.Name)
	}
	m.inside.Do(f)
	return nil
}

// Command is a command for Start. Its environment is that of the test, but for HOME.
func (m *Machine) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	if cmd.Err != nil {
		if path, err := lookPath(name); err == nil {
			cmd.Path, cmd.Err = path, nil
		}
	}
	cmd.Env = append(os.Environ(), "HOME="+Home)
	return cmd
}

// Start starts a command on the machine. It is a child of this process, which waits for it and signals it as any other.
func (m *Machine) Start(cmd *exec.Cmd) error {
	var err error
	dead := m.Do(func() { err = cmd.Start() })
	if err := errors.Join(dead, err); err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err == nil {
		m.mu.Lock()
		m.started = append(m.started, fd)
		m.mu.Unlock()
	}
	return err
}

// StartDaemon starts a command that runs until the machine is killed, or ends before; nobody has to wait for it.
func (m *Machine) StartDaemon(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	if err := m.Start(cmd); err != nil {
		t.Fatal(err)
	}
	m.daemons.Go(func() { _ = cmd.Wait() }) // it was killed
}

// Run runs a command on the machine and returns what it prints, without the last newline. If it fails, so does the test.
func (m *Machine) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return m.Output(t, m.Command(name, args...))
}

// Output is Run for a command that has been made.
func (m *Machine) Output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := m.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatalf("%s: %s: %v\n%s%s", m.Name, strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return strings.TrimSuffix(stdout.String(), "\n")
}

// Delay gives the machine a link with a delay, as Network.Delay does.
func (m *Machine) Delay(d time.Duration) { m.network.Delay(m.number, d) }

// Limit gives the machine a link of a rate, as Network.Limit does.
func (m *Machine) Limit(rate string, burst int) { m.network.Limit(m.number, rate, burst) }

// Split moves the machine and those after it in the list to a second switch, as Network.Split does.
func (m *Machine) Split(rate string, burst int) { m.network.Split(m.number, rate, burst) }

// Cut cuts the machine off: what is sent to it, or by it, is lost.
func (m *Machine) Cut() { m.network.Cut(m.number) }

// Heal undoes Cut.
func (m *Machine) Heal() { m.network.Heal(m.number) }

// Need finds a program, also where only root's PATH leads. If it is missing, the test cannot run.
func Need(t testing.TB, program, debianPackage string) string {
	t.Helper()
	path, err := lookPath(program)
	if err != nil {
		testkit.Cannot(t, "without %s: apt-get install --no-install-recommends %s", program, debianPackage)
	}
	return path
}

func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, program))
		}
	}
	if err != nil {
		return "", fmt.Errorf("%s is not installed", program)
	}
	return path, nil
}

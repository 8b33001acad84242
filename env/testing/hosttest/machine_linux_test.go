package hosttest

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestMachines(t *testing.T) {
	t.Parallel()
	list := NewMachines(t, Config{Name: "alpha"}, Config{Name: "beta", Shell: "/bin/bash"})
	for i, m := range list {
		if got := m.Run(t, "hostname"); got != m.Name {
			t.Errorf("machine %d is %q", i, got)
		}
		if got := m.Run(t, "sh", "-c", "echo /proc/[0-9]*"); len(strings.Fields(got)) != 2 { // init and sh
			t.Errorf("%s sees %s", m.Name, got)
		}
		if got := m.Run(t, "sh", "-c", "cd; pwd; ls -A"); got != Home {
			t.Errorf("the home of %s is %s", m.Name, got)
		}
		if got := m.Run(t, "getent", "passwd", "root"); !strings.HasSuffix(got, ":"+Home+":"+m.Shell) {
			t.Errorf("root on %s: %s", m.Name, got)
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0].Run(t, "pwd", "-P"); got != dir {
		t.Errorf("a command runs in %s, not in %s", got, dir)
	}
	// A file of one machine is not on the other, unless it is below /tmp.
	list[0].Run(t, "sh", "-c", "echo own >~/file")
	if got := list[1].Run(t, "sh", "-c", "ls ~"); got != "" {
		t.Errorf("beta has alpha's %s", got)
	}
	file := t.TempDir() + "/file"
	list[0].Run(t, "touch", file)
	list[1].Run(t, "test", "-e", file)
}

// TestMachinesReachEachOther by name, until one is cut off or killed.
func TestMachinesReachEachOther(t *testing.T) {
	t.Parallel()
	list := NewMachines(t, Config{Name: "alpha"}, Config{Name: "beta"})
	listen := func() *exec.Cmd {
		cmd := list[1].Command("python3", "-u", "-c", "import socket\ns=socket.create_server(('',70))\nprint()\nwhile 1: s.accept()[0].send(b'yes')")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := list[1].Start(cmd); err != nil {
			t.Fatal(err)
		}
		bufio.NewScanner(out).Scan()
		return cmd
	}
	call := func() string {
		return list[0].Run(t, "python3", "-c", "import socket\ntry: print(socket.create_connection(('beta',70),.3).recv(9).decode())\nexcept OSError as e: print(type(e).__name__)")
	}
	want := func(when, want string) {
		t.Helper()
		if got := call(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	server := listen()
	want("at first", "yes")
	list[1].Cut()
	want("cut", "TimeoutError")
	list[1].Heal()
	want("healed", "yes")
	list[1].Kill()
	if err := server.Wait(); err == nil {
		t.Error("a process outlives its machine")
	}
	if err := list[1].Start(list[1].Command("true")); err == nil {
		t.Error("a killed machine runs a command")
	}
	list[1].Boot(t)
	want("booted", "ConnectionRefusedError")
	listen()
	want("listening again", "yes")
}

// TestMachinesEndWithTheTestProcess: nothing is left if it is killed, not even what has left its session.
func TestMachinesEndWithTheTestProcess(t *testing.T) {
	t.Parallel()
	const inside = "GORUN_TEST_MACHINE"
	if os.Getenv(inside) != "" {
		m := NewMachines(t, Config{Name: "alpha"})[0]
		m.Run(t, "sh", "-c", "setsid -f sleep 600 >/dev/null 2>&1")
		cmd := m.Command("sleep", "600")
		if err := m.Start(cmd); err != nil {
			t.Fatal(err)
		}
		pids := strconv.Itoa(m.init.Process.Pid) + " " + strconv.Itoa(cmd.Process.Pid)
		if _, err := os.NewFile(3, "pids").WriteString(pids + "\n"); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	if os.Geteuid() != 0 {
		testkit.Cannot(t, "machines of their own take root")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), inside+"=1"), []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		testkit.Cannot(t, "no machine: %v", cmd.Wait())
	}
	var watched []unix.PollFd
	for _, pid := range strings.Fields(lines.Text()) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(fd) }() //nolint:revive // few
		watched = append(watched, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	_, _ = cmd.Process.Kill(), cmd.Wait()
	for i := range watched {
		n, err := unix.Poll(watched[i:i+1], 10_000)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(watched[i:i+1], 10_000)
		}
		if n != 1 {
			t.Errorf("process %d lives (%v)", i, err)
		}
	}
}

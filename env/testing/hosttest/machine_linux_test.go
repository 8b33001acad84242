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

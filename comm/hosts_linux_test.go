package comm

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// testHosts are two network namespaces that are connected: processes of different ones do not share memory.
type testHosts struct {
	address  string // of the first
	networks [2]*os.File
}

// newTestHosts makes two hosts. Where the system does not let it, the test is skipped.
func newTestHosts(t *testing.T) *testHosts {
	t.Helper()
	h := &testHosts{address: "10.9.0.1"}
	var pids [2]string
	for i := range h.networks {
		keeper := exec.CommandContext(t.Context(), "sleep", "60")
		keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if err := keeper.Start(); err != nil {
			t.Skipf("namespaces cannot be made here: %v", err)
		}
		defer func() { _ = keeper.Process.Kill(); _ = keeper.Wait() }()
		pids[i] = strconv.Itoa(keeper.Process.Pid)
		network, err := os.Open("/proc/" + pids[i] + "/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = network.Close() })
		h.networks[i] = network
	}
	if out, err := exec.Command("ip", strings.Fields("link add eth0 netns "+pids[0]+" type veth peer name eth0 netns "+pids[1])...).CombinedOutput(); err != nil {
		t.Skipf("hosts cannot be connected here: %v: %s", err, out)
	}
	for i := range h.networks {
		for _, command := range []string{"ip link set lo up", "ip addr add 10.9.0." + strconv.Itoa(i+1) + "/24 dev eth0", "ip link set eth0 up"} {
			words := strings.Fields(command)
			cmd := exec.Command(words[0], words[1:]...)
			if err := h.start(i, cmd); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Skipf("%s: %v", command, err)
			}
		}
	}
	return h
}

// start starts a command on a host.
func (h *testHosts) start(host int, cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine, as it is on the host
		if err := unix.Setns(int(h.networks[host].Fd()), unix.CLONE_NEWNET); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}

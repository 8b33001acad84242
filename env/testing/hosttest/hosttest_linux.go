// Package hosttest gives tests hosts on a network that can be cut: network namespaces, each with a thread of this process in it.
package hosttest

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// A Network consists of hosts on a bridge. It disappears when the test or its process ends.
type Network struct {
	t      testing.TB
	bridge *Host
	hosts  []*Host
}

// A Host is a network namespace.
type Host struct {
	Addr string // of the host, without a port

	thread int
	calls  chan func()
}

// New creates a network of n hosts. If that is not allowed, the test is skipped.
func New(t testing.TB, n int) *Network {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		testkit.Cannot(t, "network namespaces take the command ip")
	}
	w := &Network{t: t, bridge: newHost(t)}
	w.bridge.run(t, "ip link add bridge type bridge && ip link set bridge up")
	for i := range n {
		h := newHost(t)
		h.Addr = fmt.Sprintf("10.79.0.%d", i+1)
		w.hosts = append(w.hosts, h)
		w.bridge.run(t, fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d && ip link set %[1]s master bridge up", link(i), h.thread))
		h.run(t, fmt.Sprintf("ip link set lo up && ip addr add %s/24 dev eth0 && ip link set eth0 up", h.Addr))
	}
	return w
}

// Host is host number i, from 0.
func (w *Network) Host(i int) *Host { return w.hosts[i] }

// Cut cuts host i off. What is sent to it, or by it, is lost.
func (w *Network) Cut(i int) {
	w.t.Helper()
	w.bridge.run(w.t, "ip link set "+link(i)+" down")
}

// Heal undoes Cut.
func (w *Network) Heal(i int) {
	w.t.Helper()
	w.bridge.run(w.t, "ip link set "+link(i)+" up")
}

// Shrink makes the network lose packets to and from host i that are longer than mtu, without telling the host.
func (w *Network) Shrink(i, mtu int) {
	w.t.Helper()
	w.bridge.run(w.t, fmt.Sprintf("ip link set %s mtu %d", link(i), mtu))
}

// Limit gives host i a link of a rate, in the form of tc, such as 1gbit, in each direction. burst is how many bytes pass at once.
func (w *Network) Limit(i int, rate string, burst int) {
	w.t.Helper()
	Need(w.t, "tc", "iproute2")
	w.hosts[i].run(w.t, shape("eth0", rate, burst))
	w.bridge.run(w.t, shape(link(i), rate, burst))
}

// shape is a command that limits what is sent on a device.
func shape(device, rate string, burst int) string {
	return fmt.Sprintf("tc qdisc replace dev %s root tbf rate %s burst %d limit %d", device, rate, burst, max(4*burst, 1<<20))
}

// Run runs a command of the shell on host i.
func (w *Network) Run(i int, command string) {
	w.t.Helper()
	w.hosts[i].run(w.t, command)
}

func link(i int) string { return fmt.Sprint("host", i) }

// newHost starts a thread in its own namespace. Both end with the test.
func newHost(t testing.TB) *Host {
	t.Helper()
	h := &Host{calls: make(chan func())}
	made := make(chan error)
	goOnThread(func() {
		h.thread = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if made <- err; err != nil {
			return
		}
		for f := range h.calls {
			f()
		}
	})
	if err := <-made; err != nil {
		testkit.Cannot(t, "a network namespace cannot be made: %v", err)
	}
	t.Cleanup(func() { close(h.calls) })
	return h
}

// goOnThread runs f on a thread that ends with it. That is not the first thread of the process, which never ends, and whose namespaces
// /proc/self says are the process's.
func goOnThread(f func()) {
	go func() {
		runtime.LockOSThread() // for good: nobody else is to have this thread
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		begun := make(chan struct{})
		goOnThread(func() { close(begun); f() })
		<-begun
		runtime.UnlockOSThread()
	}()
}

// Do calls f, which must not end the test, on the host. Sockets that f opens are of that host for as long as they are open;
// goroutines that it starts are not.
func (h *Host) Do(f func()) {
	done := make(chan struct{})
	h.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

func (h *Host) run(t testing.TB, command string) {
	t.Helper()
	var said []byte
	var err error
	h.Do(func() { said, err = exec.Command("sh", "-c", command).CombinedOutput() })
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, strings.TrimSpace(string(said)))
	}
}

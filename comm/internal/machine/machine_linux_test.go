package machine

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

const asChild = "GORUN_TEST_PLACE" // makes the test binary print where it runs

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	here, err := Here()
	name, nameErr := os.Hostname()
	if err := errors.Join(err, nameErr, json.NewEncoder(os.Stdout).Encode(report{here, name, HasProc()})); err != nil {
		panic(err)
	}
}

// A report is what a child says of itself.
type report struct {
	Place
	Name    string
	HasProc bool
}

// anotherMachine lets what follows run as if on another kernel.
const anotherMachine = `mount --make-rprivate / && f=$(mktemp) && echo 11111111-2222-3333-4444-555555555555 >$f &&
	mount --bind $f /proc/sys/kernel/random/boot_id && rm $f && exec "$0"`

func TestWhatProcessesHaveInCommon(t *testing.T) {
	me, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	type common struct{ kernel, network, processes, name, proc bool }
	for what, c := range map[string]struct {
		flags  uintptr
		script string
		want   common
	}{
		"the same container":               {0, `exec "$0"`, common{true, true, true, true, true}},
		"one machine under another name":   {syscall.CLONE_NEWUTS, `echo other >/proc/sys/kernel/hostname && exec "$0"`, common{true, true, true, false, true}},
		"a container with a network":       {syscall.CLONE_NEWNET, `exec "$0"`, common{true, false, true, true, true}},
		"a container with processes":       {syscall.CLONE_NEWPID, `exec "$0"`, common{true, true, false, true, false}},
		"one that sees its processes":      {syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, `mount --make-rprivate / && mount -t proc proc /proc && exec "$0"`, common{true, true, false, true, true}},
		"another machine of the same name": {syscall.CLONE_NEWNS, anotherMachine, common{false, false, false, true, true}},
	} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", c.script, os.Args[0])
			cmd.Env = append(os.Environ(), asChild+"=1")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.flags}
			out, err := cmd.Output()
			if errors.Is(err, syscall.EPERM) {
				testkit.Cannot(t, "namespaces cannot be made here: %v", err)
			}
			var child report
			if err := errors.Join(err, json.Unmarshal(out, &child)); err != nil {
				t.Fatalf("%v: %q", err, out)
			}
			got := common{me.SameKernel(child.Place), me.SameNetwork(child.Place), me.SameProcesses(child.Place), name == child.Name, child.HasProc}
			if got != c.want {
				t.Errorf("%+v and %+v have in common %+v, want %+v", me, child, got, c.want)
			}
		})
	}
	if me.SameKernel(Place{}) || (Place{}).SameKernel(Place{}) || (Place{Kernel: "a"}).SameNetwork(Place{Kernel: "a"}) {
		t.Error("what is not known is the same")
	}
}

type conn struct {
	net.Conn
	local, remote net.Addr
}

func (c conn) LocalAddr() net.Addr  { return c.local }
func (c conn) RemoteAddr() net.Addr { return c.remote }

func TestInside(t *testing.T) {
	for _, c := range []struct {
		local, remote string
		want          bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.1.1", true},
		{"::1", "::1", true},
		{"10.0.0.7", "10.0.0.7", true},
		{"10.0.0.7", "::ffff:10.0.0.7", true},
		{"10.0.0.7", "10.0.0.8", false},
		{"127.0.0.1", "10.0.0.8", false},
	} {
		ends := conn{local: &net.TCPAddr{IP: net.ParseIP(c.local), Port: 1}, remote: &net.TCPAddr{IP: net.ParseIP(c.remote), Port: 2}}
		if got := Inside(ends); got != c.want {
			t.Errorf("from %s to %s: %t", c.local, c.remote, got)
		}
	}
	if Inside(conn{local: &net.UnixAddr{}, remote: &net.UnixAddr{}}) {
		t.Error("a Unix socket says nothing of addresses")
	}
}

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/testkit"
)

// TestMain lets this test binary be gorun, under that name. The guard that gorun starts from its own binary does not come
// as far.
func TestMain(m *testing.M) { testscript.Main(testkit.OwnSettings(m), commands) }

// commands are what this test binary can be, by the name under which it is started.
var commands = map[string]func(){"gorun": main, "ranks": ranks}

// TestScripts runs testdata/script/*.txtar, one behaviour of the command in each.
func TestScripts(t *testing.T) {
	t.Parallel()
	goEnv := goEnv(t, "GOCACHE", "GOMODCACHE", "GOPATH")
	torch, err := filepath.Abs(filepath.Join("testdata", "torch"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// A process that another test starts may have the script's files open for writing until it runs its program: nobody can run them.
			syscall.ForkLock.RLock()
			syscall.ForkLock.RUnlock() //nolint:staticcheck // all that began before have begun their program
			for name, value := range goEnv {
				e.Setenv(name, value)
			}
			e.Vars = append(e.Vars, "OMP_NUM_THREADS=1", "XDG_CONFIG_HOME="+os.Getenv("XDG_CONFIG_HOME"), "XDG_RUNTIME_DIR="+os.Getenv("XDG_RUNTIME_DIR"), raceExitsAtOnce, "TORCH="+torch)
			if python := pythonWithTorch(); python != "" {
				e.Vars = append(e.Vars, "PYTHON_EXEC="+python)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "torch":
				return pythonWithTorch() != "" || os.Getenv("CI") != "", nil // CI counts on it
			case "ipv6":
				l, err := net.Listen("tcp", "[::1]:0")
				if err != nil {
					return false, nil
				}
				return true, l.Close()
			default:
				return false, fmt.Errorf("no condition %s", name)
			}
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "silent": silent, "freeport": freePort, "listen": listen,
			"etcd": serveEtcd, "putkey": putKey, "keys": keys, "leaderless": leaderless, "deaf": deaf, "greeter": greeter, "certificates": certificates,
		},
	})
}

// pythonWithTorch is a Python that can import torch, or empty.
var pythonWithTorch = sync.OnceValue(func() string {
	for _, python := range []string{os.Getenv("PYTHON_EXEC"), "python3", "/usr/bin/python3"} {
		if python != "" && exec.Command(python, "-c", "import torch.distributed").Run() == nil {
			return python
		}
	}
	return ""
})

func goEnv(t *testing.T, names ...string) map[string]string {
	t.Helper()
	values := make(map[string]string)
	for _, name := range names {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		values[name] = string(out[:len(out)-1])
	}
	return values
}

// exits CODE COMMAND [ARGS...] runs the command and wants this exit code; stdout and stderr are kept.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

// silent wants nothing on stderr. That gorun has turned a connection away does not count: other tests look for nodes that have gone, whose
// ports this one's nodes may have now.
func silent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: silent")
	}
	for line := range strings.Lines(ts.ReadFile("stderr")) {
		if !strings.Contains(line, ": turned away a connection: ") {
			ts.Fatalf("unexpected on stderr: %s", line)
		}
	}
}

// freeport NAME sets a variable to a port that is reserved, as is the next one, until the script ends.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], findPort(ts))
}

func findPort(ts *testscript.TestScript) string {
	first, next, err := network.ReservePortPair("")
	ts.Check(err)
	ts.Defer(func() { _, _ = first.Close(), next.Close() })
	return strconv.Itoa(first.Number())
}

// listen NAME sets a variable to a port that somebody listens on until the script ends.
func listen(ts *testscript.TestScript, _ bool, args []string) {
	l := listenHere(ts)
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	ts.Defer(func() { _ = l.Close() })
}

func listenHere(ts *testscript.TestScript) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	return l
}

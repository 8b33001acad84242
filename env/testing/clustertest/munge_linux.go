package clustertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// StartMUNGE starts a daemon of MUNGE, with a key of its own, until the end of the test, and puts programs that use it in front of PATH. It returns the daemon's socket. It
// skips the test if MUNGE is not installed.
func StartMUNGE(t *testing.T) (socket string) {
	t.Helper()
	munged, err := exec.LookPath("munged")
	if err != nil {
		munged = "/usr/sbin/munged"
	}
	if _, err := os.Stat(munged); err != nil {
		testkit.Cannot(t, "MUNGE is not installed: apt-get install munge")
	}
	dir, err := os.MkdirTemp("", "munge") //nolint:usetesting // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users must reach the socket
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("a key of the test, which is long enough for a daemon of MUNGE"), 0o400); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "socket")
	start(t, exec.Command(munged, "--foreground", "--force", "--key-file="+key, "--socket="+socket, "--pid-file="+filepath.Join(dir, "pid"),
		"--log-file="+filepath.Join(dir, "log"), "--seed-file="+filepath.Join(dir, "seed"), "--num-threads=2"))
	t.Setenv("PATH", MUNGEPrograms(t, socket)+":"+os.Getenv("PATH"))
	// Nobody tells when it listens.
	for deadline := time.Now().Add(bound); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if exec.Command("munge", "--no-input").Run() == nil {
			return socket
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("munged does not answer: %s", log)
	return ""
}

// start starts a command that ends with the test, and with the process.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan struct{})
	go func() { // whose thread lives as long as the command
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
		close(done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
	})
}

// MUNGEPrograms returns a directory with munge and unmunge that use a socket. The directory lasts until the end of the test.
func MUNGEPrograms(t *testing.T, socket string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"munge", "unmunge"} {
		path, err := exec.LookPath(name)
		if err != nil {
			testkit.Cannot(t, "MUNGE is not installed: apt-get install munge")
		}
		if err := os.WriteFile(filepath.Join(bin, name), fmt.Appendf(nil, "#!/bin/sh\nexec %s --socket=%s \"$@\"\n", path, socket), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return bin
}

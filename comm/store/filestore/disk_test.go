//go:build linux

package filestore_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/store/filestore"
)

// TestFullDisk runs itself again where it may mount a small file system that nobody else sees.
func TestFullDisk(t *testing.T) {
	const inside = "FILESTORE_TEST_FULL_DISK"
	if os.Getenv(inside) != "" {
		openOnFullDisk(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Unshareflags: unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		t.Skipf("NO TEST OF A FULL DISK: no mount namespace for this user: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skip(string(out))
	case err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk"):
		t.Errorf("%v\n%s", err, out)
	}
}

// A store that finds no room says so and leaves no file; one that is open works on when there is room again.
func openOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("NO TEST OF A FULL DISK: cannot mount: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // before the directory is removed
	s := open(t, dir+"/open")
	if err := os.WriteFile(dir+"/full", make([]byte, 64<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := s.Set(t.Context(), "key", make([]byte, 8<<10)); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir+"/open") {
		t.Errorf("a value is written: %v", err)
	}
	if _, err := filestore.Open(dir + "/store"); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), dir+"/store") {
		t.Errorf("a store is opened: %v", err)
	}
	if got := listing(t, dir); strings.Contains(got, "store") {
		t.Errorf("there is a file that nobody uses: %s", got)
	}
	if err := os.Remove(dir + "/full"); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(t.Context(), "key", []byte("value")); err != nil {
		t.Error(err)
	}
	if got, err := s.Get(t.Context(), "key"); err != nil || string(got) != "value" {
		t.Errorf("got %q, %v", got, err)
	}
}

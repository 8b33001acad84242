package testkit

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// onSmallDisk marks the process that has its own mount namespace.
const onSmallDisk = "TESTKIT_SMALL_DISK"

// SmallDisk runs test with an empty directory on a disk of 64 KiB. It runs the test t again in another process, which may mount a file
// system that nobody else sees, so t must consist only of this call. If that is not allowed, it skips t.
func SmallDisk(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(onSmallDisk) != "" {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
			Cannot(t, "NO TEST OF A FULL DISK: cannot mount: %v", err)
		}
		defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // before the directory is removed
		test(t, dir)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), onSmallDisk+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Unshareflags: unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		Cannot(t, "NO TEST OF A FULL DISK: no mount namespace for this user: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		Cannot(t, "%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("%v\n%s", err, out)
	}
}

package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk runs itself again where it may mount a small file system that nobody else sees.
func TestFullDisk(t *testing.T) {
	const inside = "LAUNCHER_TEST_FULL_DISK"
	if os.Getenv(inside) != "" {
		fillDisk(t)
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

// Every line of every worker is on the disk as far as it goes, on the console, or on both.
func fillDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("NO TEST OF A FULL DISK: cannot mount: %v", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // before the directory is removed
	const workers, count = 3, 4000
	s, con := spec(t, workers)
	s.Argv = []string{"/bin/sh", "-c", `seq -f "rank $RANK out %.0f" 4000; seq -f "rank $RANK err %.0f" 4000 >&2`}
	var mu sync.Mutex
	var warnings []string
	s.Warn = func(msg string) { mu.Lock(); defer mu.Unlock(); warnings = append(warnings, msg) }
	s.Logs = LogSpec{Dir: dir, Redirect: StdMap{Default: Both}, StdoutFilters: []string{"00"}, MaxSize: 8 << 10}
	for _, e := range exits(t, start(t, s)) {
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], "no space left on device") {
		t.Errorf("warnings %q", warnings)
	}
	console := map[string]bool{}
	for line := range strings.Lines(con.String()) {
		console[line] = true
	}
	files := map[string]bool{} // with the prefix
	for name, text := range contents(t, dir) {
		prefix := ""
		if rank, _, in := strings.Cut(name, "/"); in {
			prefix = "[" + rank + "] "
		}
		for line := range strings.Lines(text) {
			files[prefix+line] = true
		}
	}
	for rank := range workers {
		for i := range 2 * count {
			line := fmt.Sprintf("[%d] rank %d %s %d\n", rank, rank, []string{"out", "err"}[i%2], i/2+1)
			if !console[line] && !files[line] {
				t.Fatalf("%q is lost", line)
			}
		}
	}
}

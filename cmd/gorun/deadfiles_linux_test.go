package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// hang puts a file system over a folder that answers nothing. Where that is not allowed the test is skipped.
func hang(t *testing.T, dir string) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		testkit.Cannot(t, "needs /dev/fuse: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fuse.Fd(), os.Getuid(), os.Getgid())
	if err := syscall.Mount("dead", dir, "fuse", 0, options); err != nil {
		_ = fuse.Close()
		testkit.Cannot(t, "needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		_ = fuse.Close() // fails whatever waits for it
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// TestDeadFileSystem: whatever of gorun's files is in a file system that has stopped answering, the job ends with its own exit code,
// and what was not written or removed is told.
func TestDeadFileSystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env, want string
	}{
		"error file":      {env: "TORCHELASTIC_ERROR_FILE=DEAD/error.json", want: "the error file was not written: .*no answer within 5s"},
		"temporary files": {env: "TMPDIR=DEAD", want: "cannot remove temporary files: .*no answer within 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead, release := t.TempDir(), newRelease(t)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := "export " + strings.ReplaceAll(c.env, "DEAD", dead) + "; exec -a gorun " + exe
			command += " sh -c 'echo runs; " + release.await() + "; exit 3'"
			n := startAs(t, patience, "/bin/bash", "bash", "-c", command)
			n.expect("runs$")
			hang(t, dead)
			release.create(t)
			n.expect(c.want)
			n.end(3)
		})
	}
}

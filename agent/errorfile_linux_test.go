package agent

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestWriteMountedErrorFile: a container's file for last words cannot be replaced, and holds them all the same.
func TestWriteMountedErrorFile(t *testing.T) {
	dir := t.TempDir()
	host, mounted := filepath.Join(dir, "host"), filepath.Join(dir, "termination-log")
	write(t, host, "something longer than what comes")
	write(t, mounted, "")
	if err := syscall.Mount(host, mounted, "", syscall.MS_BIND, ""); err != nil {
		testkit.Cannot(t, "needs the right to mount: %v", err)
	}
	err := replaceErrorFile(mounted, []byte("document"))
	if err := syscall.Unmount(mounted, 0); err != nil {
		t.Error(err)
	}
	if got := read(t, host); err != nil || got != "document" {
		t.Errorf("the host sees %q, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*.json")); left != nil {
		t.Errorf("left: %q", left)
	}
}

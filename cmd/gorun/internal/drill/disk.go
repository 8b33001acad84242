package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/cmd/gorun/internal/hosts"
)

// mountShell is how a shell in a mount namespace of its own gets a small disk, in its first argument.
const mountShell = `mount -t tmpfs -o size=256k none "$1"`

// logDir is where a node with a small disk has its log files.
func (s *testbed) logDir() string { return filepath.Join(s.dir, "logs") }

// setDisk checks whether processes can have a disk of their own.
func (s *testbed) setDisk() error {
	if err := os.Mkdir(s.logDir(), 0o700); err != nil {
		return err
	}
	probe := exec.Command("sh", "-c", mountShell, "sh", s.logDir())
	if err := setMounts(probe); err != nil {
		return &hosts.UnavailableError{Why: err.Error()}
	}
	out, err := probe.CombinedOutput()
	if err != nil {
		return &hosts.UnavailableError{Why: fmt.Sprintf("cannot mount a small disk (%v: %s): this needs root, or unshare --map-root-user", err, strings.TrimSpace(string(out)))}
	}
	return nil
}

// diskFull waits until the disk of a node is full.
func diskFull(node int) step {
	return step{fmt.Sprintf("the disk of node %d fills up", node), func(ctx context.Context, d *drill) error {
		seen := filepath.Join("/proc", fmt.Sprint(d.agents[node].cmd.Process.Pid), "root", d.logDir()) // as that process sees it
		for {
			var disk unix.Statfs_t
			if err := unix.Statfs(seen, &disk); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			} else if err == nil && disk.Bfree == 0 {
				return nil
			}
			if err := d.pass(ctx, endPause); err != nil { // there is no event for a disk that is full
				return err
			}
		}
	}}
}

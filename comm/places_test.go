//go:build linux

package comm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func init() {
	// where prints what a rank makes of the other, and waits for its death if it is rank 0.
	workerPrograms["where"] = func(ctx context.Context, g *Group) error {
		if err := AllReduce(ctx, g, []int{1}, Sum); err != nil {
			return err
		}
		other := 1 - g.Rank()
		fmt.Println("memory", g.core.TeamOfAll(), "process", g.world.Neighbour(other) > 0, "processors", g.world.Processors().Ranks)
		if g.Rank() == 1 {
			fmt.Println("state", g.world.State(other) != "")
			_, _ = io.Copy(io.Discard, waitForever{})
		}
		return Barrier(ctx, g)
	}
}

// waitForever is never read to its end.
type waitForever struct{}

func (waitForever) Read([]byte) (int, error) { select {} }

// Two ranks share memory, know each other's processes, and share processors as far as they have these in common,
// whatever the names of their machines are; and a death is told for what it is where that can be known.
func TestRanksOfDifferentContainers(t *testing.T) {
	for what, c := range map[string]struct {
		flags  uintptr
		script string
		want   string // of what rank 0 prints
		died   bool   // rank 0 can tell that rank 1's process has ended
	}{
		"the same container":                  {0, `exec "$0"`, "memory true process true processors 2\n", true},
		"one machine under another name":      {syscall.CLONE_NEWUTS, `echo other >/proc/sys/kernel/hostname && exec "$0"`, "memory true process true processors 2\n", true},
		"the host's network, other processes": {syscall.CLONE_NEWPID, `exec "$0"`, "memory true process false processors 2\n", false},
	} {
		t.Run(what, func(t *testing.T) {
			ps := startProcessesAs(t, "where", 2, func(rank int, cmd *exec.Cmd) {
				if rank == 1 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.flags}
					cmd.Args = []string{"sh", "-c", c.script, cmd.Path}
					cmd.Path = "/bin/sh"
				}
			})
			if line, err := ps[0].stdout.ReadString('\n'); line != c.want {
				t.Fatalf("rank 0 says %q, %v, want %q", line, err, c.want)
			}
			if line, err := ps[1].stdout.ReadString('\n'); line != c.want {
				t.Fatalf("rank 1 says %q, %v, want %q", line, err, c.want)
			}
			if line, err := ps[1].stdout.ReadString('\n'); line != "state false\n" {
				t.Errorf("rank 1 takes another process for rank 0's: %q, %v", line, err)
			}
			if err := errors.Join(ps[1].cmd.Process.Kill(), waited(ps[0])); err == nil {
				t.Error("rank 0 has seen nothing of rank 1's death")
			}
			if said := ps[0].stderr.String(); strings.HasSuffix(said, "): died\n") != c.died || !strings.Contains(said, "rank 1 ") {
				t.Errorf("rank 0 says %q, and could know of the death: %t", said, c.died)
			}
		})
	}
}

// Ranks of two machines of one name that listen on loopback are told so, and do not wait for each other.
func TestRanksOfTwoMachinesOfOneName(t *testing.T) {
	ps := startProcessesAs(t, "where", 2, func(rank int, cmd *exec.Cmd) {
		if rank == 1 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			cmd.Args = []string{"sh", "-c", `mount --make-rprivate / && f=$(mktemp) && echo 11111111-2222-3333-4444-555555555555 >$f &&
				mount --bind $f /proc/sys/kernel/random/boot_id && rm $f && exec "$0"`, cmd.Path}
			cmd.Path = "/bin/sh"
		}
	})
	for r, p := range ps {
		want := fmt.Sprintf("rank %d on %s listens on loopback only, and this one on %[2]s has another network", 1-r, hostname(t))
		if err, said := waited(p), p.stderr.String(); err == nil || !strings.Contains(said, want) {
			t.Errorf("rank %d ends with %v and says %q, want %s", r, err, said, want)
		}
	}
}

func waited(p *rankProcess) error {
	_, _ = io.Copy(io.Discard, p.stdout)
	return p.cmd.Wait()
}

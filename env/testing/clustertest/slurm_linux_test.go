package clustertest

import (
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestSlurms: two at once do not disturb each other.
func TestSlurms(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 3} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			c := StartSlurm(t, SlurmConfig{Nodes: nodes, KillWait: 1500 * time.Millisecond})
			t.Logf("%d nodes are up after %v", nodes, time.Since(begun))
			got := c.Run(t, "srun", "--nodes=2", "--label", "sh", "-c", "hostname; ls -d /proc/[0-9]* | wc -l | grep -qx '[0-9]'")
			if !strings.Contains(got, "0: n1") || !strings.Contains(got, "1: n2") {
				t.Errorf("srun prints %q", got)
			}
			if got := c.Run(t, "sh", "-c", "scontrol show config | grep '^KillWait'"); strings.Join(strings.Fields(got), " ") != "KillWait = 2 sec" {
				t.Error(got)
			}
		})
	}
}

func TestKilledSlurmd(t *testing.T) {
	t.Parallel()
	testkit.Nightly(t, "takes several seconds")
	c := StartSlurm(t, SlurmConfig{Nodes: 2, NodeTimeout: 2 * time.Second})
	begun := time.Now()
	c.KillSlurmd(t, 1)
	c.AwaitState(t, 1, "down")
	t.Logf("down after %v", time.Since(begun))
	c.StartSlurmd(t, 1)
	c.AwaitState(t, 2, "idle")
	t.Logf("idle after %v", time.Since(begun))
}

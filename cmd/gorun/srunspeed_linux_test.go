package main

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/clustertest"
)

var (
	srunRounds = flag.Int("srun-rounds", 0, "how often TestSrunSpeed runs a job in each way; 0: not at all")
	srunOther  = flag.String("srun-other", "", "path of another build of gorun that TestSrunSpeed measures in turns with this one")
)

// TestSrunSpeed measures how long srun takes with true on each node, and with gorun that starts true there. It judges nothing. All nodes are
// on this machine, so what it measures is mostly processor time.
func TestSrunSpeed(t *testing.T) {
	if *srunRounds == 0 {
		t.Skip("measures with -srun-rounds=9")
	}
	gorun := buildGorun(t)
	ways := []struct {
		name string
		argv []string
	}{{"true", []string{"true"}}, {"gorun true", []string{gorun, "true"}}}
	if *srunOther != "" {
		ways = append(ways, ways[1])
		ways[2].name, ways[2].argv = "other gorun true", []string{*srunOther, "true"}
	}
	c := clustertest.StartSlurm(t, clustertest.SlurmConfig{Nodes: 4})
	for _, nodes := range []int{1, 2, 4} {
		times := make([][]time.Duration, len(ways))
		for range *srunRounds {
			for i, way := range ways {
				cmd := c.Command("srun", append([]string{fmt.Sprint("--nodes=", nodes), "--ntasks-per-node=1", "--mpi=none"}, way.argv...)...)
				cmd.Env = append(cmd.Env, "OMP_NUM_THREADS=1", "GORUN_TOKEN=0123456789abcdef0123456789abcdef")
				began := time.Now()
				c.Login.Output(t, cmd)
				times[i] = append(times[i], time.Since(began))
			}
		}
		for i, way := range ways {
			slices.Sort(times[i])
			t.Logf("%d nodes, %-16s median %4d ms (%d to %d)", nodes, way.name, times[i][len(times[i])/2].Milliseconds(), times[i][0].Milliseconds(), times[i][len(times[i])-1].Milliseconds())
		}
	}
}

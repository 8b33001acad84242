package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/clustertest"
	"github.com/gorun/gorun/env/testing/hosttest"
)

var (
	launchRounds = flag.Int("launch-rounds", 0, "how often TestLaunchSpeed launches a job in each way; 0: not at all")
	launchHosts  = flag.String("launch-hosts", "2,8,32,64", "numbers of hosts of these jobs")
)

// TestLaunchSpeed measures the time from the start of gorun launch, and of mpirun over ssh, to the main of the last worker, one on each
// host. It judges nothing. All hosts are on this machine, so what it measures is mostly processor time.
func TestLaunchSpeed(t *testing.T) {
	if *launchRounds == 0 {
		t.Skip("measures with -launch-rounds=9")
	}
	gorun := buildGorun(t)
	for text := range strings.SplitSeq(*launchHosts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) {
			h := clustertest.StartHosts(t, clustertest.HostsConfig{Hosts: n})
			names := make([]string, n)
			for i, m := range h.List {
				names[i] = m.Name
			}
			ways := []struct {
				name string
				argv []string
			}{
				{"gorun launch", []string{gorun, "launch", "--connect-timeout=300", "--heartbeat-timeout=300", "--hosts=" + strings.Join(names, ":1,") + ":1"}},
				{"Open MPI", []string{"mpirun.openmpi", "--allow-run-as-root", "-H", strings.Join(names, ":1,") + ":1"}},
				{"MPICH", []string{"mpiexec.hydra", "-launcher", "ssh", "-hosts", strings.Join(names, ",")}},
			}
			times := make(map[string][]time.Duration)
			for range *launchRounds {
				for _, way := range ways {
					if _, err := exec.LookPath(way.argv[0]); err != nil {
						continue
					}
					dir := t.TempDir()
					argv := append(slices.Clone(way.argv), "sh", "-c", "date +%s%N >"+dir+"/$(hostname)")
					cmd := h.Client.Command(argv[0], argv[1:]...)
					cmd.Env = append(cmd.Env, "HOME="+hosttest.Home)
					began := time.Now()
					h.Client.Output(t, cmd)
					times[way.name] = append(times[way.name], lastOf(t, dir, n).Sub(began))
				}
			}
			for _, way := range ways {
				if list := times[way.name]; len(list) > 0 {
					slices.Sort(list)
					t.Logf("%2d hosts, %-12s median %4d ms (%d to %d)", n, way.name, list[len(list)/2].Milliseconds(), list[0].Milliseconds(), list[len(list)-1].Milliseconds())
				}
			}
		})
	}
}

// lastOf returns the latest of the times that n workers have written to files.
func lastOf(t *testing.T, dir string, n int) (last time.Time) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != n {
		t.Fatalf("%d workers have written, want %d (%v)", len(files), n, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", file, err))
		}
		if at := time.Unix(0, ns); at.After(last) {
			last = at
		}
	}
	return last
}

package bootstrap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/manager"
)

// TestManaged: where ranks that a resource manager has started meet, from its captured variables.
func TestManaged(t *testing.T) {
	for _, c := range []struct {
		manager, changes string
		want             place
		err              string
	}{
		{"slurm-four-per-node", "", place{rank: 5, size: 8, here: 4, local: 1, master: "n1:10435"}, ""},
		{"slurm-four-per-node", "MASTER_ADDR=h MASTER_PORT=7", place{rank: 5, size: 8, here: 4, local: 1, master: "h:7"}, ""},
		{"slurm-four-per-node", "MASTER_ADDR=h", place{}, "set both MASTER_ADDR and MASTER_PORT, or neither"},
		{"slurm-four-per-node", "MASTER_ADDR=h MASTER_PORT=0", place{}, `MASTER_ADDR="h", MASTER_PORT="0": want a host, and a port from 1 to 65535`},
		{"slurm-four-per-node", "SLURM_PROCID=0 SLURM_GTIDS=0,1,2,3 SLURM_LOCALID=0", place{}, "Slurm runs rank 0 on n2, and other ranks look for it on the first node, n1: set MASTER_ADDR and MASTER_PORT"},
		{"slurm-four-per-node", "SLURM_NODEID=x", place{}, `SLURM_NODEID="x": want a number of at least 0`},
		{"openmpi-in-slurm", "OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1", place{rank: 1, size: 2, here: 2, local: 1, master: "127.0.0.1:15947"}, ""},
		{"openmpi-in-slurm", "", place{}, "Open MPI does not say where rank 0 runs: set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks (mpirun -x NAME), where HOST is the host of rank 0"},
		{"mpich", "MASTER_ADDR=h MASTER_PORT=7", place{rank: 1, size: 2, here: 2, local: 1, master: "h:7"}, ""},
		{"mpich", "", place{}, "MPICH does not say where rank 0 runs: set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks, where HOST is the host of rank 0"},
		{"flux", "", place{}, "Flux does not say where rank 0 runs: set MASTER_ADDR=HOST, MASTER_PORT=PORT and GORUN_TOKEN for all ranks, where HOST is the host of rank 0"},
		{"flux", "FLUX_JOB_NNODES=1", place{rank: 1, size: 2, here: 2, master: "127.0.0.1:24307"}, ""},
		{"slurm-batch-script", "", place{size: -1}, ""},
		{"kubernetes", "", place{size: -1}, ""},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "env", "manager", "testdata", c.manager))
		if err != nil {
			t.Fatal(err)
		}
		environ := make(map[string]string)
		for _, kv := range append(strings.Fields(string(text)), strings.Fields(c.changes)...) {
			name, value, _ := strings.Cut(kv, "=")
			environ[name] = value
		}
		p, ok, err := managed(func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
		got := place{rank: p.rank, size: p.size, here: p.here, local: p.local, master: p.master}
		switch {
		case c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)):
			t.Errorf("%s %s: got %v\nwant %s", c.manager, c.changes, err, c.err)
		case c.err == "" && c.want.size < 0 && (ok || err != nil):
			t.Errorf("%s: got %+v, %v, want nothing", c.manager, got, err)
		case c.err == "" && c.want.size >= 0 && (!ok || err != nil || got != c.want):
			t.Errorf("%s %s: got %+v, %t, %v\nwant %+v", c.manager, c.changes, got, ok, err, c.want)
		}
	}
}

// TestBefore: which ranks of a node come before one does not follow from numbers alone if a manager deals them out in
// another order.
func TestBefore(t *testing.T) {
	of := func(local []int) *manager.Task { return &manager.Task{Local: local} }
	for _, c := range []struct {
		place place
		want  []int
		known bool
	}{
		{place{rank: 5, local: 2}, []int{3, 4}, true},
		{place{rank: 2, local: 2}, []int{0, 1}, true},
		{place{rank: 5, local: 0}, nil, true},
		{place{rank: 5, size: 8, here: 4, local: 2, task: of([]int{1, 3, 5, 7})}, []int{1, 3}, true},
		{place{rank: 5, size: 8, here: 4, local: 2, task: of(nil)}, nil, false},
		{place{rank: 5, size: 8, here: 8, local: 5, task: of(nil)}, []int{0, 1, 2, 3, 4}, true},
		{place{rank: 5, size: 8, here: 4, local: 0, task: of(nil)}, nil, true},
	} {
		if got, known := c.place.before(); !slices.Equal(got, c.want) || known != c.known {
			t.Errorf("%+v: got %v, %t; want %v, %t", c.place, got, known, c.want, c.known)
		}
	}
}

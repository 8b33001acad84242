package topology

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files of what workers are bound to")

// TestBind holds what every machine's workers get against testdata: read it there.
func TestBind(t *testing.T) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			got, file := table(l.machine(t)), filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func table(m Machine) string {
	var b strings.Builder
	b.WriteString(describe(m))
	for _, p := range Policies {
		fmt.Fprintf(&b, "\n%s\n", p)
		for _, workers := range []int{1, 2, 3, 4, 8, 16} {
			fmt.Fprintf(&b, "%3d: ", workers)
			bindings, err := Bind(m, p, workers, gpusOf(m, workers))
			if err != nil {
				fmt.Fprintln(&b, err)
				continue
			}
			for i, w := range bindings {
				if i > 0 {
					b.WriteString(" | ")
				}
				b.WriteString(FormatList(w.CPUs))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// gpusOf gives the workers the machine's GPUs in turn, if it has any.
func gpusOf(m Machine, workers int) []int {
	if len(m.GPUs) == 0 {
		return nil
	}
	var gpus []int
	for i := range workers {
		gpus = append(gpus, i%len(m.GPUs))
	}
	return gpus
}

func TestBindErrors(t *testing.T) {
	lost, gpus := layouts["gpus-lost"].machine(t), layouts["gpus"].machine(t)
	for _, c := range []struct {
		m       Machine
		p       Policy
		workers int
		gpus    []int
		want    string
	}{
		{gpus, "nodes", 1, nil, `no such binding "nodes": want node, socket, exclusive or core-complex`},
		{Machine{}, Node, 1, nil, "there is no CPU to bind workers to"},
		{gpus, Node, 2, []int{0}, "2 workers, but GPUs for 1: each needs one to be bound near it"},
		{lost, Node, 1, []int{2}, "local rank 0 cannot be bound near its GPU: the system does not tell the NUMA node of NVIDIA GPU 2 (0000:33:00.0), " +
			"and there are 2: leave the workers unbound, or set its numa_node in /sys"},
		{gpus, Node, 2, []int{0, -1}, "local rank 1 cannot be bound near its GPU: the system does not tell the NUMA node of a device that it does not list, " +
			"and there are 2: leave the workers unbound, or set its numa_node in /sys"},
		{gpus.Within([]int{0}), Node, 2, []int{0, 2}, "local rank 1 cannot be bound near its GPU: NVIDIA GPU 2 (0000:33:00.0) is on NUMA node 1, " +
			"where this process may use no CPU: allow it some there, or leave the workers unbound"},
		{gpus.Within([]int{0}), Exclusive, 2, nil, "no core for each worker: 2 workers belong to NUMA node 0, where this process may use 1 physical core: " +
			"start fewer workers, or let them share with the policy node"},
	} {
		if b, err := Bind(c.m, c.p, c.workers, c.gpus); err == nil || err.Error() != c.want {
			t.Errorf("%v, %v\nwant %s", b, err, c.want)
		}
	}
}

// TestExclusiveSideBySide: cores of one worker share a cache if they can, however they are numbered.
func TestExclusiveSideBySide(t *testing.T) {
	m := Machine{CPUs: []CPU{{ID: 0}, {ID: 1, Core: 1, L3: 1}, {ID: 2, Core: 2}, {ID: 3, Core: 3, L3: 1}}}
	got, err := Bind(m, Exclusive, 2, nil)
	if want := []Binding{{[]int{0, 2}, []int{0}}, {[]int{1, 3}, []int{0}}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// anyMachine is some CPUs of a machine with up to 4 nodes, threads that are anywhere, and GPUs.
func anyMachine(t *rapid.T) (Machine, []int) {
	node := rapid.Custom(func(t *rapid.T) numaNode {
		return numaNode{rapid.IntRange(0, 1).Draw(t, "socket"), rapid.IntRange(1, 9).Draw(t, "cores"), rapid.IntRange(1, 4).Draw(t, "perL3")}
	})
	l := layout{nodes: rapid.SliceOfN(node, 1, 4).Draw(t, "nodes"), threads: rapid.IntRange(1, 4).Draw(t, "threads")}
	for range rapid.IntRange(0, 4).Draw(t, "gpus") {
		l.gpus = append(l.gpus, rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node"))
	}
	m, err := Read(l.files())
	if err != nil {
		t.Fatal(err)
	}
	allowed := rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.CPUs)-1), 1, len(m.CPUs), rapid.ID[int]).Draw(t, "allowed")
	slices.Sort(allowed)
	return m.Within(allowed), allowed
}

func TestBindProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, allowed := anyMachine(t)
		p := rapid.SampledFrom(Policies).Draw(t, "policy")
		workers := rapid.IntRange(1, 20).Draw(t, "workers")
		gpus := gpusOf(m, workers)
		bindings, err := Bind(m, p, workers, gpus)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("several lines: %v", err)
			}
			if gpus == nil && (p != Exclusive || workers <= m.Cores(allowed)) {
				t.Fatal(err)
			}
			return
		}
		if len(bindings) != workers {
			t.Fatalf("%d bindings for %d workers", len(bindings), workers)
		}
		owner := map[int]int{} // by core
		for rank, b := range bindings {
			cpus := m.Within(b.CPUs).CPUs
			if len(b.CPUs) == 0 || len(cpus) != len(b.CPUs) || !slices.IsSorted(b.CPUs) || !slices.Equal(b.Nodes, keys(cpus, CPU.node)) {
				t.Fatalf("%d: %+v", rank, b)
			}
			if p != Socket && len(b.Nodes) > 1 {
				t.Fatalf("%d: %+v is on several nodes", rank, b)
			}
			if gpus != nil && !slices.Contains(b.Nodes, m.GPUs[gpus[rank]].Node) {
				t.Fatalf("%d: %+v is not near its GPU", rank, b)
			}
			for _, c := range cpus {
				if other, taken := owner[c.Core]; p == Exclusive && taken && other != rank {
					t.Fatalf("%d and %d share core %d", rank, other, c.Core)
				}
				owner[c.Core] = rank
			}
			for _, c := range m.CPUs { // threads stay together
				if owner, ok := owner[c.Core]; ok && owner == rank && !slices.Contains(b.CPUs, c.ID) {
					t.Fatalf("%d: %+v is without CPU %d of one of its cores", rank, b, c.ID)
				}
			}
		}
	})
}

// TestSpread: local ranks are in blocks, and no worker could find more cores for itself in another place.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, _ := anyMachine(t)
		workers := rapid.IntRange(1, 20).Draw(t, "workers")
		homes := m.spread(workers)
		nodes := groupBy(m.CPUs, CPU.node)
		blocks := 0
		for _, node := range nodes {
			if len(ranksAt(homes, node[0].Node)) > 0 {
				blocks++
			}
		}
		if len(homes) != workers || len(slices.Compact(slices.Clone(homes))) != blocks {
			t.Fatalf("%d workers, not in blocks: %v", workers, homes)
		}
		counts := apportion(workers, nodes)
		for i, here := range nodes {
			for j, there := range nodes {
				if counts[i] > 0 && coreCount(here)*(counts[j]+1) < coreCount(there)*counts[i] {
					t.Fatalf("a worker of node %d would have more on node %d: %v", i, j, counts)
				}
			}
		}
	})
}

package topology

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// layout is a machine to play. CPUs are numbered as Linux does on x86: one thread of every core first.
type layout struct {
	nodes   []numaNode
	threads int   // of a core
	gpus    []int // NUMA nodes of NVIDIA GPUs
	allowed string
	bare    bool // the kernel tells neither nodes nor caches
}

type numaNode struct {
	socket, cores int // no cores: only memory
	perL3         int // cores
}

var layouts = map[string]layout{
	"laptop":      {threads: 2, nodes: []numaNode{{0, 4, 4}}},
	"two-sockets": {threads: 2, nodes: []numaNode{{0, 8, 8}, {0, 8, 8}, {1, 8, 8}, {1, 8, 8}}},
	"epyc":        {threads: 2, nodes: []numaNode{{0, 8, 4}, {0, 8, 4}, {0, 8, 4}, {0, 8, 4}}},
	"uneven":      {threads: 1, nodes: []numaNode{{0, 12, 6}, {1, 4, 4}}},
	"cpuset":      {threads: 2, nodes: []numaNode{{0, 8, 4}, {1, 8, 4}}, allowed: "2-4,10,18-20"},
	"cxl":         {threads: 2, nodes: []numaNode{{0, 4, 4}, {1, 4, 4}, {0, 0, 0}}},
	"bare":        {threads: 1, nodes: []numaNode{{0, 4, 4}}, bare: true},
	"gpus":        {threads: 2, nodes: []numaNode{{0, 6, 3}, {1, 6, 3}}, gpus: []int{0, 0, 1, 1}},
	"gpus-lost":   {threads: 1, nodes: []numaNode{{0, 4, 4}, {1, 4, 4}}, gpus: []int{-1, -1, -1, -1, -1, -1, -1, -1}},
	"gpus-vm":     {threads: 2, nodes: []numaNode{{0, 8, 8}}, gpus: []int{-1, -1, -1, -1, -1, -1, -1, -1}},
}

// files are what the kernel of the machine shows.
func (l layout) files() fstest.MapFS {
	files := fstest.MapFS{}
	write := func(text, name string, args ...any) {
		files[fmt.Sprintf(name, args...)] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	total := 0
	for _, n := range l.nodes {
		total += n.cores
	}
	// cpus are the threads of some cores.
	cpus := func(first, n int) string {
		var list []int
		for thread := range l.threads {
			for core := first; core < first+n; core++ {
				list = append(list, thread*total+core)
			}
		}
		return FormatList(list)
	}
	write(cpus(0, total), "sys/devices/system/cpu/online")
	core := 0
	for node, n := range l.nodes {
		if !l.bare {
			write(cpus(core, n.cores), "sys/devices/system/node/node%d/cpulist", node)
		}
		for c := range n.cores {
			for thread := range l.threads {
				dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d", thread*total+core+c)
				write(fmt.Sprint(n.socket), "%s/topology/physical_package_id", dir)
				write(cpus(core+c, 1), "%s/topology/core_cpus_list", dir)
				if !l.bare {
					cache(write, dir, 0, 1, cpus(core+c, 1))
					cache(write, dir, 2, 2, cpus(core+c, 1))
					first := c / n.perL3 * n.perL3
					cache(write, dir, 3, 3, cpus(core+first, min(n.perL3, n.cores-first)))
				}
			}
		}
		core += n.cores
	}
	for i, node := range l.gpus {
		bus := fmt.Sprintf("0000:%02x:00.0", 0x11*(i+1))
		write("", "dev/nvidia%d", i)
		write(fmt.Sprintf("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-%08d-aaaa\nBus Location: \t %s\nDevice Minor: \t %d", i, bus, i),
			"proc/driver/nvidia/gpus/%s/information", bus)
		write(fmt.Sprint(node), "sys/bus/pci/devices/%s/numa_node", bus)
	}
	return files
}

func cache(write func(text, name string, args ...any), dir string, index, level int, shared string) {
	write(fmt.Sprint(level), "%s/cache/index%d/level", dir, index)
	write(shared, "%s/cache/index%d/shared_cpu_list", dir, index)
}

// machine is what a process finds that may use the allowed CPUs only.
func (l layout) machine(t testing.TB) Machine {
	t.Helper()
	m, err := Read(l.files())
	if err != nil {
		t.Fatal(err)
	}
	if l.allowed == "" {
		return m
	}
	allowed, err := ParseList(l.allowed)
	if err != nil {
		t.Fatal(err)
	}
	return m.Within(allowed)
}

// describe says what a machine has, one line for each node and GPU.
func describe(m Machine) string {
	var b strings.Builder
	for _, cpus := range groupBy(m.CPUs, CPU.node) {
		fmt.Fprintf(&b, "NUMA node %d: CPUs %s, %s on socket %s, L3", cpus[0].Node, list(cpus), count(coreCount(cpus), "core"), FormatList(keys(cpus, CPU.socket)))
		for _, group := range groupBy(cpus, CPU.l3) {
			fmt.Fprintf(&b, " [%s]", list(group))
		}
		b.WriteString("\n")
	}
	for _, g := range m.GPUs {
		fmt.Fprintf(&b, "GPU %d: %s %s on NUMA node %d\n", g.Index, g.Vendor, g.Bus, g.Node)
	}
	return b.String()
}

func list(cpus []CPU) string { return FormatList(bindingTo(cpus).CPUs) }

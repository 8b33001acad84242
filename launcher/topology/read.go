package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Read finds out what the machine has whose / is root: the CPUs that are online, wherever this process may run, and
// the GPUs that it has a device file for. Where the kernel tells nothing of it, there is one socket and one NUMA
// node, both 0, a CPU is a core, and the node shares one cache.
func Read(root fs.FS) (Machine, error) {
	r := &reader{root: root}
	m := Machine{CPUs: r.cpus(), GPUs: r.gpus()}
	if r.err == nil && len(m.CPUs) == 0 {
		r.err = errors.New("/sys/devices/system/cpu lists no CPU")
	}
	if r.err != nil {
		return Machine{}, fmt.Errorf("cannot read what this machine has: %w", r.err)
	}
	return m, nil
}

const cpuDir = "sys/devices/system/cpu"

func (r *reader) cpus() []CPU {
	var cpus []CPU
	var cores, caches sharing
	nodes := r.nodes()
	for _, id := range r.online() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
		cpus = append(cpus, CPU{
			ID:     id,
			Core:   cores.lowest(id, func() []int { return r.threads(dir) }),
			Socket: max(0, r.number(dir+"/topology/physical_package_id", 0)), // -1: the firmware did not say
			Node:   nodes[id],
			L3:     caches.lowest(id, func() []int { return r.sharers(dir) }),
		})
	}
	withoutCache(cpus, caches)
	return cpus
}

// online lists the CPUs that run.
func (r *reader) online() []int {
	if list := r.list(cpuDir + "/online"); len(list) > 0 {
		return list
	}
	var list []int
	for _, dir := range r.glob(cpuDir + "/cpu[0-9]*") {
		if id, ok := suffixNumber(dir, "cpu"); ok {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// nodes returns the NUMA node of every CPU that is not on node 0.
func (r *reader) nodes() map[int]int {
	of := map[int]int{}
	for _, dir := range r.glob("sys/devices/system/node/node[0-9]*") {
		node, ok := suffixNumber(dir, "node")
		if !ok {
			continue
		}
		for _, id := range r.list(dir + "/cpulist") {
			of[id] = node
		}
	}
	return of
}

// threads lists the CPUs of the core of one. The second name is that of kernels before 5.3.
func (r *reader) threads(dir string) []int {
	if list := r.list(dir + "/topology/core_cpus_list"); len(list) > 0 {
		return list
	}
	return r.list(dir + "/topology/thread_siblings_list")
}

// sharers lists the CPUs that share the last-level cache of one, if that is of level 3 or more.
func (r *reader) sharers(dir string) []int {
	last, level := "", 2
	for _, cache := range r.glob(dir + "/cache/index[0-9]*") {
		if l := r.number(cache+"/level", 0); l > level && r.text(cache+"/type") != "Instruction" {
			last, level = cache, l
		}
	}
	if last == "" {
		return nil
	}
	return r.list(path.Join(last, "shared_cpu_list"))
}

// sharing knows what CPUs have in common, by the lowest of those that have it. The system tells it to each of them;
// one is enough.
type sharing map[int]int

// lowest returns the lowest CPU that shares with this one, or this one if it does not know; with lists them.
func (s *sharing) lowest(id int, with func() []int) int {
	if *s == nil {
		*s = sharing{}
	}
	if low, ok := (*s)[id]; ok {
		return low
	}
	list := with()
	if !slices.Contains(list, id) {
		return id
	}
	for _, other := range list {
		(*s)[other] = list[0]
	}
	return list[0]
}

// withoutCache gives the CPUs of which no last-level cache is known that of their node.
func withoutCache(cpus []CPU, known sharing) {
	lowest := map[int]int{} // by node
	for i, c := range cpus {
		if _, ok := lowest[c.Node]; !ok {
			lowest[c.Node] = c.ID
		}
		if _, ok := known[c.ID]; !ok {
			cpus[i].L3 = lowest[c.Node]
		}
	}
}

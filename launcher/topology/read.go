package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Read returns the hardware of the machine whose / is root: all CPUs that are online, even those that this process
// may not use, and the GPUs for which it has a device file. If the kernel does not say otherwise, there is one
// socket and one NUMA node, both 0, each CPU is a core, and the node shares one cache.
func Read(root fs.FS) (Machine, error) {
	r := &reader{root: root}
	m := Machine{CPUs: r.cpus(), GPUs: r.gpus()}
	if r.err == nil && len(m.CPUs) == 0 {
		r.err = errors.New("/sys/devices/system/cpu lists no CPU")
	}
	if r.err != nil {
		return Machine{}, fmt.Errorf("cannot read the hardware of this machine: %w", r.err)
	}
	return m, nil
}

const cpuDir = "sys/devices/system/cpu"

func (r *reader) cpus() []CPU {
	ids, nodes := r.online(), r.nodes()
	cores, caches := sharing{}, sharing{}
	for _, id := range ids {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
		cores.learn(id, func() []int { return r.threads(dir) })
		caches.learn(id, func() []int { return r.sharers(dir) })
	}
	var cpus []CPU
	first := map[int]int{} // CPU of every node
	for _, id := range ids {
		node := nodes[id]
		if _, ok := first[node]; !ok {
			first[node] = id
		}
		socket := r.number(fmt.Sprintf("%s/cpu%d/topology/physical_package_id", cpuDir, id), 0)
		cpus = append(cpus, CPU{
			ID:     id,
			Core:   cores.lowest(id, id),
			Socket: max(0, socket), // -1: the firmware did not say
			Node:   node,
			L3:     caches.lowest(id, first[node]),
		})
	}
	return cpus
}

// online lists the CPUs that are online.
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
		if l := r.number(cache+"/level", 0); l > level {
			last, level = cache, l
		}
	}
	if last == "" {
		return nil
	}
	return r.list(path.Join(last, "shared_cpu_list"))
}

// sharing holds which CPUs share something, by the lowest of them. The system lists them for each CPU; reading
// one list is enough.
type sharing map[int]int

// learn asks which CPUs share with a CPU, unless this is already known.
func (s sharing) learn(id int, ask func() []int) {
	if _, ok := s[id]; ok {
		return
	}
	list := ask()
	for _, other := range list {
		s[other] = list[0]
	}
}

// lowest returns the lowest CPU that shares with this one, or other if none is known.
func (s sharing) lowest(id, other int) int {
	if low, ok := s[id]; ok {
		return low
	}
	return other
}

package topology

import (
	"cmp"
	"slices"
)

// CPU is one logical processor, a hardware thread of a core.
type CPU struct {
	ID     int // the system's number
	Core   int // the lowest CPU of its physical core
	Socket int // physical package
	Node   int // NUMA node
	L3     int // the lowest CPU that shares its last-level cache, of level 3 or more; without one, of its node
}

// GPU is one accelerator.
type GPU struct {
	Vendor string // NVIDIA, AMD or Intel
	Index  int    // among those of its vendor, as the vendor's runtime counts
	Bus    string // PCI address, such as 0000:41:00.0; empty: not known
	UUID   string // as in CUDA_VISIBLE_DEVICES, such as GPU-01234567-...; empty: not known
	Node   int    // NUMA node; -1: not known
}

// The vendors of GPUs.
const (
	NVIDIA = "NVIDIA"
	AMD    = "AMD"
	Intel  = "Intel"
)

// Machine is the hardware of a machine, or a part of it.
type Machine struct {
	CPUs []CPU // by ID
	GPUs []GPU // by vendor as above, and index
}

// Within returns the machine with only those of its CPUs that are listed.
func (m Machine) Within(cpus []int) Machine {
	return Machine{GPUs: m.GPUs, CPUs: m.where(func(c CPU) bool { return slices.Contains(cpus, c.ID) })}
}

// Cores returns the number of physical cores that the listed CPUs are on.
func (m Machine) Cores(cpus []int) int {
	return coreCount(m.Within(cpus).CPUs)
}

func (m Machine) where(wanted func(CPU) bool) []CPU {
	return slices.DeleteFunc(slices.Clone(m.CPUs), func(c CPU) bool { return !wanted(c) })
}

func (m Machine) onNode(node int) []CPU {
	return m.where(func(c CPU) bool { return c.Node == node })
}

// groupBy divides CPUs into groups of the same key, in the order of the keys.
func groupBy(cpus []CPU, key func(CPU) int) [][]CPU {
	cpus = slices.Clone(cpus)
	slices.SortStableFunc(cpus, func(a, b CPU) int { return cmp.Compare(key(a), key(b)) })
	var groups [][]CPU
	for i, c := range cpus {
		if i == 0 || key(c) != key(cpus[i-1]) {
			groups = append(groups, nil)
		}
		last := &groups[len(groups)-1]
		*last = append(*last, c)
	}
	return groups
}

func coreCount(cpus []CPU) int {
	return len(groupBy(cpus, CPU.core))
}

func (c CPU) core() int   { return c.Core }
func (c CPU) socket() int { return c.Socket }
func (c CPU) node() int   { return c.Node }
func (c CPU) l3() int     { return c.L3 }

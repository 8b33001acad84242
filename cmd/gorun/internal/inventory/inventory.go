// Package inventory finds what there is on this machine: what gorun env prints.
package inventory

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/cmd/gorun/internal/release"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/proc"
	"github.com/gorun/gorun/launcher/topology"
)

// Findings is what gorun finds on this machine. The JSON names are documented in docs/environment.md. Numbers that
// are not known or have no limit are absent.
type Findings struct {
	Gorun   release.Build `json:"gorun"`
	Host    string        `json:"host"`
	Kernel  string        `json:"kernel"`
	CPUs    cpus          `json:"cpus"`
	GPUs    []gpu         `json:"gpus"`
	Visible devices       `json:"visible_devices"`
	Memory  memory        `json:"memory"`
	Limits  limits        `json:"limits"`
	Network networkInfo   `json:"network"`
	Manager string        `json:"manager,omitempty"` // and its job, such as Slurm step 17.0

	Problems []string `json:"problems,omitempty"` // what gorun could not find out
}

type cpus struct {
	Usable    int    `json:"usable"`  // that gorun can keep busy: --nproc-per-node=cpu
	Allowed   string `json:"allowed"` // on which it may run, such as 0-3,8
	Cores     int    `json:"cores"`
	Sockets   int    `json:"sockets"`
	NUMANodes int    `json:"numa_nodes"`
}

type gpu struct {
	Vendor   string `json:"vendor"`
	Bus      string `json:"pci_address,omitempty"`
	NUMANode *int   `json:"numa_node,omitempty"`
}

type devices struct {
	Count    int    `json:"count"`              // that workers see: --nproc-per-node=gpu, or xpu
	Variable string `json:"variable,omitempty"` // that narrows a worker to some of them
}

type memory struct {
	Total      uint64 `json:"total_bytes,omitempty"`
	Available  uint64 `json:"available_bytes,omitempty"`
	Limit      uint64 `json:"cgroup_limit_bytes,omitempty"` // the least of this process's cgroup and those above it
	Shared     uint64 `json:"dev_shm_bytes,omitempty"`
	SharedFree uint64 `json:"dev_shm_free_bytes,omitempty"`
	HugePages  string `json:"transparent_huge_pages,omitempty"`
}

type limits struct {
	OpenFiles       uint64 `json:"open_files,omitempty"` // that a worker may have, unless it raises the limit
	MostOpenFiles   uint64 `json:"open_files_hard,omitempty"`
	Processes       uint64 `json:"processes,omitempty"`
	CgroupProcesses uint64 `json:"cgroup_processes,omitempty"` // the least of this process's cgroup and those above it
	LockedMemory    uint64 `json:"locked_memory_bytes,omitempty"`
}

type networkInfo struct {
	Address    netip.Addr     `json:"address,omitzero"` // at which others are likely to reach this node, without --local-addr
	Doubt      string         `json:"doubt,omitempty"`  // why that may be wrong
	Interfaces []netInterface `json:"interfaces"`
}

type netInterface struct {
	Name      string       `json:"name"`
	Up        bool         `json:"up"`
	Addresses []netip.Addr `json:"addresses"`
}

// Find finds out what there is. It changes nothing, and sends nothing. root is the file system from /, and lookup
// finds variables.
func Find(ctx context.Context, root fs.FS, lookup func(string) (string, bool)) *Findings {
	f := &Findings{Gorun: release.ThisBuild(), GPUs: []gpu{}}
	var err error
	if f.Host, err = os.Hostname(); err != nil {
		f.problem("the name of the host", err)
	}
	f.Kernel = read(root, "proc/sys/kernel/osrelease")
	f.findCPUs(root)
	f.findDevices(root, lookup)
	f.findMemory(root)
	f.findLimits(ctx, root)
	f.findNetwork(ctx)
	switch task, err := manager.Find(lookup); {
	case err != nil:
		f.problem("the resource manager", err)
	case task != nil:
		f.Manager = task.String()
	}
	return f
}

func (f *Findings) problem(what string, err error) {
	f.Problems = append(f.Problems, fmt.Sprintf("%s: %v", what, err))
}

func (f *Findings) findCPUs(root fs.FS) {
	var err error
	if f.CPUs.Usable, err = topology.CPUCount(root); err != nil {
		f.problem("the number of CPUs", err)
	}
	machine, err := topology.Usable(root)
	if err != nil {
		f.problem("the CPUs", err)
		return
	}
	ids, sockets, nodes := []int{}, make(map[int]bool), make(map[int]bool)
	for _, c := range machine.CPUs {
		ids, sockets[c.Socket], nodes[c.Node] = append(ids, c.ID), true, true
	}
	f.CPUs.Allowed, f.CPUs.Cores = topology.FormatList(ids), machine.Cores(ids)
	f.CPUs.Sockets, f.CPUs.NUMANodes = len(sockets), len(nodes)
	for _, g := range machine.GPUs {
		found := gpu{Vendor: g.Vendor, Bus: g.Bus}
		if g.Node >= 0 {
			found.NUMANode = &g.Node
		}
		f.GPUs = append(f.GPUs, found)
	}
}

func (f *Findings) findDevices(root fs.FS, lookup func(string) (string, bool)) {
	for _, kind := range []string{"gpu", "xpu"} {
		d, err := topology.Accelerators(root, kind, lookup)
		if err != nil {
			f.problem("the devices that workers see", err)
			return
		}
		if len(d.Names) > 0 {
			f.Visible = devices{len(d.Names), d.Variable}
			return
		}
	}
}

func (f *Findings) findMemory(root fs.FS) {
	bytesOf := func(name string) uint64 {
		kib, _ := strconv.ParseUint(strings.TrimSuffix(proc.Field(read(root, "proc/meminfo"), name), " kB"), 10, 50)
		return kib << 10
	}
	f.Memory.Total, f.Memory.Available = bytesOf("MemTotal:"), bytesOf("MemAvailable:")
	f.Memory.Limit = cgroupLimit(root, "memory", "memory.limit_in_bytes", "memory.max")
	if f.Memory.Limit >= f.Memory.Total { // version 1 has a huge number for no limit
		f.Memory.Limit = 0
	}
	var disk unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &disk); err != nil {
		f.problem("/dev/shm", err)
	} else {
		f.Memory.Shared, f.Memory.SharedFree = disk.Blocks*uint64(disk.Bsize), disk.Bavail*uint64(disk.Bsize)
	}
	_, chosen, _ := strings.Cut(read(root, "sys/kernel/mm/transparent_hugepage/enabled"), "[") // always [madvise] never
	f.Memory.HugePages, _, _ = strings.Cut(chosen, "]")
}

const openFilesLimit = "the limit of open files"

func (f *Findings) findLimits(ctx context.Context, root fs.FS) {
	var files, processes, locked unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		f.problem(openFilesLimit, err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &processes); err != nil {
		f.problem("the limit of processes", err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked); err != nil {
		f.problem("the limit of locked memory", err)
	}
	f.Limits = limits{f.openFiles(ctx), bounded(files.Max), bounded(processes.Cur), cgroupLimit(root, "pids", "pids.max", "pids.max"), bounded(locked.Cur)}
}

// openFiles returns the limit of open files that a child of this process has, as a worker does. Go raises that of
// this process.
func (f *Findings) openFiles(ctx context.Context) uint64 {
	said, err := exec.CommandContext(ctx, "sh", "-c", "ulimit -Sn").Output()
	if err != nil {
		f.problem(openFilesLimit, err)
	}
	limit, _ := strconv.ParseUint(strings.TrimSpace(string(said)), 10, 64) // or it is "unlimited"
	return bounded(limit)
}

// bounded returns a limit, or 0 if there is none.
func bounded(limit uint64) uint64 {
	if limit >= math.MaxInt64 {
		return 0
	}
	return limit
}

func (f *Findings) findNetwork(ctx context.Context) {
	list, err := network.Interfaces()
	if err != nil {
		f.problem("the network interfaces", err)
	}
	f.Network.Interfaces = []netInterface{}
	for _, i := range list {
		f.Network.Interfaces = append(f.Network.Interfaces, netInterface{i.Name, i.Up, append([]netip.Addr{}, i.Addrs...)})
	}
	if f.Network.Address, f.Network.Doubt, err = network.OutwardAddr(ctx); err != nil {
		f.problem("the address of this node", err)
	}
}

// cgroupLimit returns the least limit of this process's cgroup and of those above it, from the file of either
// version; 0: there is none.
func cgroupLimit(root fs.FS, controller, fileV1, fileV2 string) (least uint64) {
	for _, g := range proc.Cgroups(read(root, "proc/self/cgroup"), read(root, "proc/self/mountinfo"), controller) {
		file := fileV2
		if g.V1 {
			file = fileV1
		}
		for _, dir := range g.Dirs {
			limit, err := strconv.ParseUint(strings.TrimSpace(read(root, path.Join(dir, file)[1:])), 10, 64)
			if err == nil && (least == 0 || limit < least) { // else it is "max", or there is no such file
				least = limit
			}
		}
	}
	return least
}

// read returns the contents of a file, or nothing if it cannot be read: a container hides many files.
func read(root fs.FS, name string) string {
	text, _ := fs.ReadFile(root, name)
	return strings.TrimRight(string(text), "\n")
}

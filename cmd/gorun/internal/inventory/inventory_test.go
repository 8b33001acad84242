package inventory

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gorun/gorun/cmd/gorun/internal/release"
)

// TestFind: what the files of a machine say.
func TestFind(t *testing.T) {
	files := map[string]string{
		"proc/sys/kernel/osrelease":                        "6.1.0-test\n",
		"proc/meminfo":                                     "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\nbad\n",
		"sys/devices/system/cpu/online":                    "0-1023\n",
		"sys/kernel/mm/transparent_hugepage/enabled":       "always [madvise] never\n",
		"proc/self/cgroup":                                 "0::/a/b\n",
		"proc/self/mountinfo":                              "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/a/b/memory.max":                     "max\n",
		"sys/fs/cgroup/a/memory.max":                       "262144\n",
		"sys/fs/cgroup/a/b/pids.max":                       "100\n",
		"sys/fs/cgroup/a/pids.max":                         "200\n",
		"proc/driver/nvidia/gpus/0000:17:00.0/information": "",
		"proc/driver/nvidia/gpus/0000:65:00.0/information": "",
	}
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	variables := map[string]string{"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "17", "SLURM_JOB_NUM_NODES": "x"}
	f := Find(t.Context(), root, func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	if f.Kernel != "6.1.0-test" || f.Visible.Count != 1 || f.Visible.Variable != "CUDA_VISIBLE_DEVICES" || f.CPUs.Usable < 1 || f.Limits.OpenFiles == 0 {
		t.Errorf("%+v", f)
	}
	if m := f.Memory; m.Total != 1<<20 || m.Available != 512<<10 || m.Limit != 256<<10 || m.HugePages != "madvise" {
		t.Errorf("%+v", m)
	}
	if f.Limits.CgroupProcesses != 100 || f.Limits.MostOpenFiles < f.Limits.OpenFiles {
		t.Errorf("%+v", f.Limits)
	}
	if !slices.ContainsFunc(f.Network.Interfaces, func(i netInterface) bool {
		return i.Name == "lo" && slices.Contains(i.Addresses, netip.MustParseAddr("127.0.0.1"))
	}) {
		t.Errorf("%+v", f.Network)
	}
	if f.Manager != "" || len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0], "the resource manager: ") {
		t.Errorf("%q, %q", f.Manager, f.Problems)
	}
	variables["SLURM_JOB_NUM_NODES"] = "1"
	if f = Find(t.Context(), root, func(name string) (string, bool) { v, ok := variables[name]; return v, ok }); f.Manager != "Slurm job 17" || f.Problems != nil {
		t.Errorf("%q, %q", f.Manager, f.Problems)
	}
}

// TestCgroupLimitV1: version 1 says by a huge number that there is no limit.
func TestCgroupLimitV1(t *testing.T) {
	for text, want := range map[string]uint64{"9223372036854771712": 0, "65536": 65536} {
		f := Findings{}
		f.findMemory(fstest.MapFS{
			"proc/meminfo":        {Data: []byte("MemTotal: 1024 kB\n")},
			"proc/self/cgroup":    {Data: []byte("4:memory:/job\n")},
			"proc/self/mountinfo": {Data: []byte("35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")},
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": {Data: []byte(text + "\n")},
		})
		if f.Memory.Limit != want {
			t.Errorf("%s: %d, want %d", text, f.Memory.Limit, want)
		}
	}
}

func TestFindingsText(t *testing.T) {
	node := 1
	f := Findings{
		Gorun: release.Build{Version: "1.2", Go: "go1.26", OS: "linux", Arch: "amd64"}, Host: "n\x1b1", Kernel: "6.1",
		CPUs: cpus{Usable: 4, Allowed: "0-7", Cores: 4, Sockets: 1, NUMANodes: 2},
		GPUs: []gpu{{Vendor: "NVIDIA", NUMANode: &node}, {Vendor: "AMD"}, {Vendor: "NVIDIA"}}, Visible: devices{2, "CUDA_VISIBLE_DEVICES"},
		Memory:  memory{Total: 3 << 29, Available: 1 << 29, Limit: 1 << 29, Shared: 1 << 19},
		Limits:  limits{OpenFiles: 1024, MostOpenFiles: 4096, CgroupProcesses: 100, LockedMemory: 8 << 20},
		Network: networkInfo{netip.MustParseAddr("10.0.0.1"), "there are two", []netInterface{{"eth0", true, []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}}, {"eth1", false, nil}, {"eth2", true, nil}}},
		Manager: "Slurm step 17.0", Problems: []string{"the CPUs: lost"},
	}
	const want = `gorun           1.2, go1.26, linux/amd64
host            n\x1b1, kernel 6.1
CPUs            4 usable, of 0-7: 4 cores, 1 socket, 2 NUMA nodes
GPUs            2 of NVIDIA, 1 of AMD; workers see 2 (CUDA_VISIBLE_DEVICES)
memory          1.5 GiB, 512.0 MiB available; the cgroup allows 512.0 MiB
/dev/shm        512 KiB, not known free
huge pages      not known
open files      1024, at most 4096
processes       no limit; the cgroup allows 100
locked memory   8.0 MiB
address         10.0.0.1; there are two
interface       eth0: 10.0.0.1 fd00::1
interface       eth1: down
interface       eth2: no address
started by      Slurm step 17.0
not known       the CPUs: lost
`
	if got := f.Text(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	f.Limits.OpenFiles = 0
	if got := f.Text(); !strings.Contains(got, "\nopen files      no limit, at most 4096\n") {
		t.Errorf("without a limit:\n%s", got)
	}
	f.problem(openFilesLimit, errors.New("no shell"))
	if got := f.Text(); !strings.Contains(got, "\nopen files      not known, at most 4096\n") {
		t.Errorf("without a shell:\n%s", got)
	}
}

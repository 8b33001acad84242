package topology

import (
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// tree is a file system written as a txtar archive.
func tree(t testing.TB, archive string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return files
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, files string
		want        []CPU
	}{
		{"nothing but CPUs", "-- sys/devices/system/cpu/cpu1/x --\n-- sys/devices/system/cpu/cpu0/x --\n-- sys/devices/system/cpu/cpufreq/x --\n",
			[]CPU{{ID: 0, Core: 0}, {ID: 1, Core: 1}}},
		{"CPU 1 is offline", "-- sys/devices/system/cpu/online --\n0,2-3\n-- sys/devices/system/cpu/cpu1/x --\n",
			[]CPU{{ID: 0, Core: 0}, {ID: 2, Core: 2}, {ID: 3, Core: 3}}},
		{"firmware without sockets, kernel before 5.3", `
-- sys/devices/system/cpu/online --
0-1
-- sys/devices/system/cpu/cpu0/topology/physical_package_id --
-1
-- sys/devices/system/cpu/cpu0/topology/thread_siblings_list --
0-1
`, []CPU{{ID: 0}, {ID: 1}}},
		{"one core without the cache of the others", `
-- sys/devices/system/cpu/online --
0-4
-- sys/devices/system/node/node5/cpulist --
1-4
-- sys/devices/system/cpu/cpu2/cache/index2/level --
2
-- sys/devices/system/cpu/cpu2/cache/index2/shared_cpu_list --
2
-- sys/devices/system/cpu/cpu4/cache/index3/level --
3
-- sys/devices/system/cpu/cpu4/cache/index3/shared_cpu_list --
3-4
`, []CPU{{ID: 0}, {ID: 1, Core: 1, Node: 5, L3: 1}, {ID: 2, Core: 2, Node: 5, L3: 1}, {ID: 3, Core: 3, Node: 5, L3: 3}, {ID: 4, Core: 4, Node: 5, L3: 3}}},
		{"level 4 is further out", `
-- sys/devices/system/cpu/online --
0-1
-- sys/devices/system/cpu/cpu1/cache/index0/level --
4
-- sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list --
0-1
-- sys/devices/system/cpu/cpu1/cache/index1/level --
3
-- sys/devices/system/cpu/cpu1/cache/index1/shared_cpu_list --
1
`, []CPU{{ID: 0}, {ID: 1, Core: 1}}},
		{"a core that does not list itself", "-- sys/devices/system/cpu/online --\n0-1\n-- sys/devices/system/cpu/cpu1/topology/core_cpus_list --\n0\n",
			[]CPU{{ID: 0}, {ID: 1, Core: 1}}},
	} {
		if m, err := Read(tree(t, c.files)); err != nil || !reflect.DeepEqual(m.CPUs, c.want) {
			t.Errorf("%s: %+v, %v", c.name, m.CPUs, err)
		}
	}
	for _, c := range [][2]string{
		{"", "cannot read the hardware of this machine: /sys/devices/system/cpu lists no CPU"},
		{"-- sys/devices/system/cpu/online --\n0-1048576\n", "cannot read the hardware of this machine: /sys/devices/system/cpu/online: " +
			`"0-1048576" in the list "0-1048576": want numbers below 65536 in ascending order, such as 0-3,8,10-11`},
		{"-- sys/devices/system/cpu/online --\n0\n-- sys/devices/system/cpu/cpu0/topology/physical_package_id --\nzero\n",
			`cannot read the hardware of this machine: /sys/devices/system/cpu/cpu0/topology/physical_package_id: "zero": want a number`},
		{"-- sys/devices/system/cpu/online --\n" + strings.Repeat("0", maxFile), "cannot read the hardware of this machine: /sys/devices/system/cpu/online: longer than 1048576 bytes"},
	} {
		if m, err := Read(tree(t, c[0])); err == nil || err.Error() != c[1] {
			t.Errorf("%+v, %v\nwant %s", m, err, c[1])
		}
	}
}

func TestReadThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /sys on " + runtime.GOOS)
	}
	root := os.DirFS("/")
	m, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", describe(m))
	allowed, err := Allowed()
	if err != nil || len(allowed) != runtime.NumCPU() {
		t.Errorf("may run on CPUs %v, %v; Go says %d", allowed, err, runtime.NumCPU())
	}
	if got := bindingTo(m.Within(allowed).CPUs).CPUs; !slices.Equal(got, allowed) {
		t.Errorf("may run on CPUs %v, of which the machine has %v", allowed, got)
	}
	if n, err := CPUCount(root); err != nil || n < 1 || n > len(allowed) {
		t.Errorf("can keep %d of CPUs %v busy, %v", n, allowed, err)
	}
}

func TestWithin(t *testing.T) {
	m := layouts["epyc"].machine(t)
	if got := m.Within([]int{3, 35, 4, 99}).CPUs; len(got) != 3 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		cpus []int
		want int
	}{{nil, 0}, {[]int{3}, 1}, {[]int{3, 35}, 1}, {[]int{3, 4, 35}, 2}, {[]int{99}, 0}} {
		if got := m.Cores(c.cpus); got != c.want {
			t.Errorf("CPUs %v are on %d cores, want %d", c.cpus, got, c.want)
		}
	}
}

package topology

import (
	"strings"
	"testing"
)

func TestQuota(t *testing.T) {
	const (
		v2    = "-- proc/self/mountinfo --\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
		v1    = "-- proc/self/mountinfo --\n33 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n34 25 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
		inV2  = "-- proc/self/cgroup --\n0::/user/job\n"
		inV1  = "-- proc/self/cgroup --\n5:cpuset:/\n4:cpu,cpuacct:/user/job\n0::/elsewhere\n"
		top   = "sys/fs/cgroup"
		topV1 = "sys/fs/cgroup/cpu,cpuacct"
	)
	for _, c := range []struct {
		name, files string
		want        int
	}{
		{"no cgroups", "", 0},
		{"no limit", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\nmax 100000\n", 0},
		{"rounded up", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n150000 100000\n", 2},
		{"even", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n300000 100000\n", 3},
		{"less than one", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n1000 100000\n", 1},
		{"absurd", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n9223372036854775807 2\n", 1<<31 - 1},
		{"the parent grants less", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n800000 100000\n-- " + top + "/user/cpu.max --\n200000 50000\n", 4},
		{"the group grants less", v2 + inV2 + "-- " + top + "/user/job/cpu.max --\n200000 100000\n-- " + top + "/user/cpu.max --\n800000 100000\n", 2},
		{"another group", v2 + inV2 + "-- " + top + "/user/jobs/cpu.max --\n100000 100000\n", 0},
		{"in a container that sees its own path", "-- proc/self/mountinfo --\n30 23 0:26 /docker/a /sys/fs/cgroup ro - cgroup2 cgroup rw\n" +
			"-- proc/self/cgroup --\n0::/docker/a/b\n-- sys/fs/cgroup/cpu.max --\n300000 100000\n-- sys/fs/cgroup/b/cpu.max --\n500000 100000\n", 3},
		{"in a container whose path starts like another", "-- proc/self/mountinfo --\n30 23 0:26 /docker/a /sys/fs/cgroup ro - cgroup2 cgroup rw\n" +
			"-- proc/self/cgroup --\n0::/docker/ab\n-- sys/fs/cgroup/cpu.max --\n300000 100000\n-- sys/fs/cgroup/b/cpu.max --\n100000 100000\n", 3},
		{"in a namespace of its own", v2 + "-- proc/self/cgroup --\n0::/\n-- sys/fs/cgroup/cpu.max --\n250000 100000\n", 3},
		{"moved out of its namespace", v2 + "-- proc/self/cgroup --\n0::/../other\n-- sys/fs/cgroup/cpu.max --\n250000 100000\n", 3},
		{"moved next to its namespace", v2 + "-- proc/self/cgroup --\n0::/../other\n-- sys/fs/other/cpu.max --\n100000 100000\n", 0},
		{"not a path", v2 + "-- proc/self/cgroup --\n0:://user\n-- sys/fs/cgroup/cpu.max --\n250000 100000\n", 3},
		{"a mount point with a blank", "-- proc/self/mountinfo --\n30 23 0:26 / /my\\040cgroup rw - cgroup2 cgroup2 rw\n" + inV2 + "-- my cgroup/user/cpu.max --\n200000 100000\n", 2},
		{"version 1", v1 + inV1 + "-- " + topV1 + "/user/job/cpu.cfs_quota_us --\n350000\n-- " + topV1 + "/user/job/cpu.cfs_period_us --\n100000\n", 4},
		{"version 1, no limit", v1 + inV1 + "-- " + topV1 + "/user/job/cpu.cfs_quota_us --\n-1\n-- " + topV1 + "/user/job/cpu.cfs_period_us --\n100000\n", 0},
		{"version 1, the parent", v1 + inV1 + "-- " + topV1 + "/user/cpu.cfs_quota_us --\n50000\n-- " + topV1 + "/user/cpu.cfs_period_us --\n100000\n", 1},
		{"another controller of version 1", v1 + inV1 + "-- sys/fs/cgroup/cpuset/user/job/cpu.cfs_quota_us --\n1\n-- sys/fs/cgroup/cpuset/user/job/cpu.cfs_period_us --\n1\n", 0},
		{"both versions", v1 + "35 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" + inV1 + "-- sys/fs/cgroup/unified/elsewhere/cpu.max --\n200000 100000\n" +
			"-- " + topV1 + "/user/cpu.cfs_quota_us --\n300000\n-- " + topV1 + "/user/cpu.cfs_period_us --\n100000\n", 2},
	} {
		if got, err := quota(tree(t, c.files)); err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", c.name, got, err, c.want)
		}
	}
	const want = "cannot read how much CPU time this process is granted: /sys/fs/cgroup/user/cpu.max: " +
		`"lots" in a period of "100000": want microseconds`
	if got, err := quota(tree(t, v2+inV2+"-- sys/fs/cgroup/user/cpu.max --\nlots 100000\n")); err == nil || err.Error() != want {
		t.Errorf("%d, %v; want %s", got, err, want)
	}
}

func FuzzQuota(f *testing.F) {
	f.Add("0::/a/b\n", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n", "150000 100000")
	f.Add("4:cpu,cpuacct:/a\n", "33 25 0:28 /a /cg rw - cgroup cgroup rw,cpu\n", "5")
	f.Add("0::/../x\n1:cpu\n:::", "- cgroup2\n1 2 3 // / - cgroup2 a b\n \\040", "max")
	f.Fuzz(func(t *testing.T, groups, mounts, limit string) {
		archive := "-- proc/self/cgroup --\n" + groups + "\n-- proc/self/mountinfo --\n" + mounts + "\n"
		for _, dir := range []string{"cg", "cg/a", "cg/a/b"} {
			archive += "-- " + dir + "/cpu.max --\n" + limit + "\n-- " + dir + "/cpu.cfs_quota_us --\n" + limit + "\n-- " + dir + "/cpu.cfs_period_us --\n1000\n"
		}
		n, err := quota(tree(t, archive))
		if n < 0 || err != nil && (n != 0 || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

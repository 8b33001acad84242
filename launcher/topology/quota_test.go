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
		{"in a namespace of its own", v2 + "-- proc/self/cgroup --\n0::/\n-- sys/fs/cgroup/cpu.max --\n250000 100000\n", 3},
		{"moved out of its namespace", v2 + "-- proc/self/cgroup --\n0::/../other\n-- sys/fs/cgroup/cpu.max --\n250000 100000\n", 3},
		{"version 1", v1 + inV1 + "-- " + topV1 + "/user/job/cpu.cfs_quota_us --\n350000\n-- " + topV1 + "/user/job/cpu.cfs_period_us --\n100000\n", 4},
		{"version 1, no limit", v1 + inV1 + "-- " + topV1 + "/user/job/cpu.cfs_quota_us --\n-1\n-- " + topV1 + "/user/job/cpu.cfs_period_us --\n100000\n", 0},
		{"version 1, the parent", v1 + inV1 + "-- " + topV1 + "/user/cpu.cfs_quota_us --\n50000\n-- " + topV1 + "/user/cpu.cfs_period_us --\n100000\n", 1},
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
	f.Add("150000 100000", "-1", "100000")
	f.Add("max", "50000", "0")
	f.Add("9223372036854775807 -2", "x\ny", "")
	f.Fuzz(func(t *testing.T, limit, time, period string) {
		const mounts = "30 23 0:26 / /v2 rw - cgroup2 cgroup2 rw\n33 25 0:28 / /v1 rw - cgroup cgroup rw,cpu\n"
		n, err := quota(tree(t, "-- proc/self/cgroup --\n4:cpu:/\n0::/\n-- proc/self/mountinfo --\n"+mounts+"-- v2/cpu.max --\n"+limit+
			"\n-- v1/cpu.cfs_quota_us --\n"+time+"\n-- v1/cpu.cfs_period_us --\n"+period+"\n"))
		if n < 0 || err != nil && (n != 0 || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

package proc

import (
	"path"
	"reflect"
	"testing"
)

func TestCgroups(t *testing.T) {
	const (
		top = "/sys/fs/cgroup"
		mem = top + "/memory"
		v1  = "24 1 0:22 / /proc rw - proc proc rw\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n" +
			"33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,hugetlb,memory\n"
		docker = "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		pod    = "30 23 0:26 /kube/pod /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
	)
	in := func(dirs ...string) []Cgroup { return []Cgroup{{Dirs: dirs}} }
	inV1 := func(dirs ...string) []Cgroup { return []Cgroup{{V1: true, Dirs: dirs}} }
	outside := []Cgroup{{Dirs: []string{top}, Outside: true}}
	for _, c := range []struct {
		name, cgroup, mountinfo string
		want                    []Cgroup
	}{
		{"not mounted", "4:memory:/job\n0::/job\n", "", nil},
		{"not told", "", v2, outside},
		{"garbage", "0:\n:::\n4:memory\n", "- \n\n - cgroup2\n1 2 3 / /x rw - cgroup2 a\n1 2 3 / - cgroup2 a b\n", nil},

		{"v2", "0::/user.slice/run.scope\n", v2, in(top+"/user.slice/run.scope", top+"/user.slice", top)},
		{"v2, the root", "0::/\n", v2, in(top)},
		{"v2, a colon", "0::/a:b", v2, in(top+"/a:b", top)},
		{"v2, dots", "0::/..a/b..\n", v2, in(top+"/..a/b..", top+"/..a", top)},
		{"v2, in a container that sees its own path", "0::/kube/pod/c\n", pod, in(top+"/c", top)},
		{"v2, a path that starts like the container's", "0::/kube/pods\n", pod, outside},
		{"v2, above the container", "0::/kube\n", pod, outside},
		{"v2, moved out of its namespace", "0::/../other\n", v2, outside},
		{"v2, moved above its namespace", "0::/..\n", v2, outside},
		{"v2, the mount of another namespace", "0::/../a/b\n", "30 23 0:26 /../a /cg rw - cgroup2 cgroup2 rw\n", in("/cg/b", "/cg")},
		{"v2, not a path", "0:://job\n", v2, outside},
		{"v2, a way out", "0::/a/../../b\n", v2, outside},
		{"v2, mounted twice", "0::/a\n", v2 + "31 23 0:26 /a /x rw - cgroup2 cgroup2 rw\n", append(in(top+"/a", top), in("/x")...)},
		{"v2, on the root", "0::/a\n", "30 23 0:26 / / rw - cgroup2 cgroup2 rw\n", in("/a", "/")},
		{"v2, blanks", "0::/my job/a\\b\n", "30 23 0:26 /my\\040job /my\\011cg\\134 rw - cgroup2 cgroup2 rw\n", in("/my\tcg\\/a\\b", "/my\tcg\\")},

		{"v1 before v2", "0::/a\n9:name=systemd:/\n4:memory,hugetlb:/job/1\n2:cpuset:/x\n", v1,
			append(inV1(mem+"/job/1", mem+"/job", mem), in(top+"/unified/a", top+"/unified")...)},
		{"v1, container", "4:cpu,memory:/docker/ab\n", docker, inV1(mem)},
		{"v1, another's", "4:memory:/docker/abc\n", docker, []Cgroup{{V1: true, Dirs: []string{mem}, Outside: true}}},
		{"v1, another controller", "4:memory:/a\n", "33 31 0:30 / /x rw - cgroup cgroup rw,cpu,memory_x\n", nil},
	} {
		if got := Cgroups(c.cgroup, c.mountinfo, "memory"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Every directory is a clean path from the root, and each is right above the one before.
func FuzzCgroups(f *testing.F) {
	f.Add("4:memory:/job/1\n0::/a/b\n", "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n41 31 0:38 /a /u rw - cgroup2 cgroup2 rw\n")
	f.Add("0::/../x\n1:memory\n:::", "- cgroup2\n1 2 3 // / - cgroup2 a b\n1 2 3 /.. ../\\040 - cgroup2 a b\n")
	f.Fuzz(func(t *testing.T, cgroup, mountinfo string) {
		for _, g := range Cgroups(cgroup, mountinfo, "memory") {
			if len(g.Dirs) == 0 || g.Outside && len(g.Dirs) != 1 {
				t.Errorf("%+v", g)
			}
			for i, dir := range g.Dirs {
				if !path.IsAbs(dir) || path.Clean(dir) != dir || i > 0 && dir != path.Dir(g.Dirs[i-1]) {
					t.Errorf("%+v", g)
				}
			}
		}
	})
}

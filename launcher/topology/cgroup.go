package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// quota returns how many CPUs' time the cgroup of this process and all above it grant, rounded up; 0: no limit.
// A machine may have cgroups of both versions, and they may be mounted several times; the least counts.
func quota(root fs.FS) (int, error) {
	r := &reader{root: root}
	v2, v1 := parseCgroups(r.text("proc/self/cgroup"))
	least := math.MaxInt
	for _, m := range parseMounts(r.text("proc/self/mountinfo")) {
		group, granted := v2, r.grantedV2
		if m.v1 {
			group, granted = v1, r.grantedV1
		}
		for _, dir := range m.dirs(group) {
			if n := granted(dir); n > 0 {
				least = min(least, n)
			}
		}
	}
	if r.err != nil {
		return 0, fmt.Errorf("cannot read how much CPU time this process is granted: %w", r.err)
	}
	if least == math.MaxInt {
		return 0, nil
	}
	return least, nil
}

// grantedV2 returns the CPUs that a directory of cgroup v2 grants, 0 for no limit.
func (r *reader) grantedV2(dir string) int {
	name := path.Join(dir, "cpu.max")
	text := r.text(name)
	if text == "" {
		return 0 // the root has none, nor has a group without the controller
	}
	time, period, _ := strings.Cut(text, " ")
	if time == "max" {
		time = "-1"
	}
	return r.granted(name, time, period)
}

func (r *reader) grantedV1(dir string) int {
	name := path.Join(dir, "cpu.cfs_quota_us")
	time, period := r.text(name), r.text(path.Join(dir, "cpu.cfs_period_us"))
	if time == "" || period == "" {
		return 0
	}
	return r.granted(name, time, period)
}

// granted divides CPU time by the period in which it may be used, both in microseconds. Less than 0 is no limit.
func (r *reader) granted(name, time, period string) int {
	t, err1 := strconv.ParseInt(time, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err := errors.Join(err1, err2); err != nil || p <= 0 {
		r.failed(name, fmt.Errorf("%.20q in a period of %.20q: want microseconds", time, period))
		return 0
	}
	if t < 0 {
		return 0
	}
	return int(min(max(1, t/p+min(1, t%p)), math.MaxInt32))
}

// parseCgroups returns the groups that /proc/self/cgroup tells, of version 2 and of the CPU controller of version
// 1, each as a path in its hierarchy.
func parseCgroups(text string) (v2, v1 string) {
	for line := range strings.Lines(text) {
		id, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case id == "0" && controllers == "":
			v2 = group
		case hasOption(controllers, "cpu"):
			v1 = group
		}
	}
	return v2, v1
}

// cgroupMount is where a hierarchy of cgroups, or part of it, is mounted.
type cgroupMount struct {
	point string // slash-separated, relative to /
	root  string // the group that is seen there; in a container its own, or /
	v1    bool   // of the CPU controller of version 1; else version 2
}

// parseMounts picks the mounts of cgroups from /proc/self/mountinfo.
func parseMounts(text string) []cgroupMount {
	var mounts []cgroupMount
	for line := range strings.Lines(text) {
		// id parent device root point options [tags] - type source superblock-options
		before, after, _ := strings.Cut(line, " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		m := cgroupMount{root: unescape(where[3]), point: strings.TrimPrefix(unescape(where[4]), "/")}
		switch {
		case what[0] == "cgroup" && hasOption(what[2], "cpu"):
			m.v1 = true
		case what[0] != "cgroup2":
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// dirs returns the directories of a group and of all above it, as far as they are seen in the mount. A group that is
// not below the mount's root is in a hierarchy that this process sees another part of: that part's top counts.
func (m cgroupMount) dirs(group string) []string {
	dirs := []string{m.point}
	below, ok := strings.CutPrefix(group, strings.TrimSuffix(m.root, "/"))
	if !ok || !strings.HasPrefix(below, "/") || !fs.ValidPath(below[1:]) {
		return dirs
	}
	for dir := below[1:]; dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, path.Join(m.point, dir))
	}
	return dirs
}

func hasOption(list, option string) bool {
	for o := range strings.SplitSeq(list, ",") {
		if o == option {
			return true
		}
	}
	return false
}

// unescape undoes what the kernel does to blanks in paths.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

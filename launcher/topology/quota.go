package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/gorun/gorun/env/proc"
)

// quota returns the CPU time that the cgroup of this process and all cgroups above it grant, as a number of CPUs,
// rounded up; 0: no limit. A machine may have cgroups of both versions, and each may be mounted several times; the
// smallest limit counts. If the group is outside of what this process sees, the top of what it sees counts.
func quota(root fs.FS) (int, error) {
	r := &reader{root: root}
	least := math.MaxInt
	for _, g := range proc.Cgroups(r.text("proc/self/cgroup"), r.text("proc/self/mountinfo"), "cpu") {
		granted := r.grantedV2
		if g.V1 {
			granted = r.grantedV1
		}
		for _, dir := range g.Dirs {
			if n := granted(strings.TrimPrefix(dir, "/")); n > 0 {
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

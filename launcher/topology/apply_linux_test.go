package topology

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// child is what a process finds that is forked from this thread: the CPUs that it may run on, and how it gets memory.
func child(t *testing.T) (cpus, memory string) {
	t.Helper()
	return found(t, "/proc/self/status", `\nCpus_allowed_list:\t(\S+)\n`), found(t, "/proc/self/numa_maps", `^[0-9a-f]+ ([^\n]+?) file=`)
}

func found(t *testing.T, file, pattern string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cat", file).Output()
	if err != nil && file == "/proc/self/numa_maps" {
		return "" // a kernel without NUMA
	}
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
	return string(m[1])
}

// policies are what child finds after memory was bound to a node, or to one that is not there.
func policies(t *testing.T, node, before string) (bound, missing string) {
	t.Helper()
	if !CanBindMemory() {
		t.Log("memory is not tested: this system does not let it be bound")
		return before, before
	}
	mode, was, err := mempolicy()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = setMempolicy(mode, was) }()
	if err := setMempolicy(unix.MPOL_PREFERRED_MANY, maskOf([]int{0}, maxNodes)); err != nil {
		t.Logf("this kernel is before 5.15: %v", err)
		return "local", "local"
	}
	return "prefer (many):" + node, "local"
}

func TestApply(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(os.DirFS("/"))
	if err != nil {
		t.Fatal(err)
	}
	cpus, before := child(t)
	if cpus != FormatList(allowed) {
		t.Fatalf("before: CPUs %s, but may run on %v", cpus, allowed)
	}
	last := allowed[len(allowed)-1:]
	node := bindingTo(m.Within(last).CPUs).Nodes
	bound, missing := policies(t, FormatList(node), before)
	for _, c := range []struct {
		name           string
		cpus, nodes    []int
		wantCPUs, want string
	}{
		{"nothing", nil, nil, cpus, before},
		{"a CPU", last, nil, FormatList(last), before},
		{"a CPU and its memory", last, node, FormatList(last), bound},
		{"memory", nil, node, cpus, bound},
		{"memory that there is not", nil, []int{1000}, cpus, missing},
		{"all", allowed, nil, cpus, before},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			restore, err := Apply(c.cpus, c.nodes)
			if err != nil {
				t.Fatal(err)
			}
			got, from := child(t)
			restore()
			if got != c.wantCPUs || from != c.want {
				t.Errorf("CPUs %s, memory %s; want %s, %s", got, from, c.wantCPUs, c.want)
			}
			if again, from := child(t); again != cpus || from != before {
				t.Errorf("restored to CPUs %s, memory %s; was %s, %s", again, from, cpus, before)
			}
		})
	}
}

// TestApplyMemoryLikeBefore: what gorun was started with is what workers find that are not bound.
func TestApplyMemoryLikeBefore(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	allowed, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	outer, err := Apply(allowed[:1], []int{0})
	if err != nil {
		t.Fatal(err)
	}
	defer outer()
	cpus, before := child(t)
	inner, err := Apply(allowed, []int{1000})
	if err != nil {
		t.Fatal(err)
	}
	inner()
	if again, from := child(t); again != cpus || from != before {
		t.Errorf("restored to CPUs %s, memory %s; was %s, %s", again, from, cpus, before)
	}
}

func TestApplyCPUsThatAreNot(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := Allowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []int{-1, 60000, 1 << 20} {
		for _, cpus := range [][]int{{missing}, {before[0], missing}} {
			restore, err := Apply(cpus, nil)
			if err == nil {
				restore()
				t.Errorf("bound to %v", cpus)
				continue
			}
			want := fmt.Sprintf("cannot bind to CPUs %s: this process may not use %d, or the machine has no such CPU", FormatList(cpus), missing)
			if err.Error() != want {
				t.Errorf("%v\nwant %s", err, want)
			}
			if after, err := Allowed(); err != nil || !slices.Equal(after, before) {
				t.Errorf("left with CPUs %v, %v; want %v", after, err, before)
			}
		}
	}
}

func TestMask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfDistinct(rapid.IntRange(-2, maxCPUs+1), rapid.ID[int]).Draw(t, "list")
		slices.Sort(list)
		want := slices.DeleteFunc(slices.Clone(list), func(n int) bool { return n < 0 || n >= maxCPUs })
		if got := maskOf(list, maxCPUs).list(); !slices.Equal(got, want) {
			t.Fatalf("%v is %v", list, got)
		}
	})
}

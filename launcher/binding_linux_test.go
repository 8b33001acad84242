package launcher

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/gorun/gorun/launcher/topology"
)

func TestEachWorkerHasItsCPUs(t *testing.T) {
	cpus := affinity()
	if len(cpus) < 2 {
		t.Skip("NOT TESTED: this process has one CPU only")
	}
	s, con := spec(t, 4, "bound")
	s.Workers[0].CPUs = cpus[:1]
	s.Workers[1].CPUs = cpus[1:2]
	s.Workers[3].CPUs = cpus[:2]
	s.Workers[3].MemNodes = []int{0}
	runtime.LockOSThread()
	canBind := topology.CanBindMemory()
	runtime.UnlockOSThread()
	warned := make(chan string, 10)
	s.Warn = func(msg string) { warned <- msg }
	for _, e := range exits(t, start(t, s)) {
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	close(warned)
	memory := "prefer"
	if !canBind {
		memory = "default" // and a warning, once
		if got, want := <-warned, "the system does not allow binding memory to NUMA nodes [0]: the workers run without it"; got != want {
			t.Errorf("warning %q, want %q", got, want)
		}
	}
	for msg := range warned {
		t.Errorf("warning %q", msg)
	}
	for i, want := range []string{
		fmt.Sprintf("%v default", cpus[:1]), fmt.Sprintf("%v default", cpus[1:2]),
		fmt.Sprintf("%v default", cpus), fmt.Sprintf("%v %s", cpus[:2], memory),
	} {
		if line := fmt.Sprintf("[%d] %s\n", i, want); !strings.Contains(con.String(), line) {
			t.Errorf("no %q in\n%s", line, con)
		}
	}
}

func TestCPUThatIsNotThere(t *testing.T) {
	first := affinity()[0]
	for _, missing := range []int{-1, 1023, 100000} {
		for _, cpus := range [][]int{{missing}, {first, missing}} {
			s, _ := spec(t, 2, "wait")
			s.Workers[1].CPUs = cpus
			g, err := Start(t.Context(), s)
			want := fmt.Sprintf("cannot start local rank 1: cannot bind to CPUs %s: this process may not use %d, or the machine has no such CPU", topology.FormatList(cpus), missing)
			if g != nil || err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
	if list := children(t); len(list) > 0 {
		t.Errorf("children left: %+v", list)
	}
}

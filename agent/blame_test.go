package agent

import (
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/launcher"
)

func TestAccuse(t *testing.T) {
	const never = -1
	term := launcher.Exit{Rank: 1, Code: 143, Signal: syscall.SIGTERM, Stopped: true}
	for _, c := range []struct {
		name    string
		root    launcher.Exit
		other   launcher.Exit // rank 1
		files   [2]int        // milliseconds at which ranks 0 and 1 wrote their error files
		accused int
		code    int
	}{
		{"the first to exit wrote first", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{1, 2}, 0, 3},
		{"the first to exit wrote second", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 1}, 1, 4},
		{"at the same time", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 2}, 0, 3},
		{"stopped on its way out", launcher.Exit{Code: 3}, term, [2]int{2, 1}, 1, 3},
		{"stopped, and it exited by itself", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 1, Stopped: true}, [2]int{2, 1}, 1, 1},
		{"no file of the first", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{never, 1}, 0, 3},
		{"no file of the other", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, never}, 0, 3},
		{"a crash", launcher.Exit{Code: 139, Signal: syscall.SIGSEGV}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 1}, 0, 139},
	} {
		e := &WorkerError{Root: c.root, Code: c.root.Code, Reports: make(map[int]Report)}
		if c.other.Stopped {
			e.Stopped = []launcher.Exit{c.other, {Rank: 2, Stopped: true}}
		} else {
			e.Others = []launcher.Exit{{Rank: 2}, c.other}
		}
		for rank, ms := range c.files {
			if ms != never {
				e.Reports[rank] = Report{Written: time.UnixMilli(int64(ms))}
			}
		}
		e.accuse()
		if e.Root.Rank != c.accused || e.Code != c.code {
			t.Errorf("%s: rank %d with %d, want rank %d with %d", c.name, e.Root.Rank, e.Code, c.accused, c.code)
		}
		seen := map[int]int{e.Root.Rank: 1}
		for _, x := range append(e.Others, e.Stopped...) {
			seen[x.Rank]++
		}
		if len(seen) != 3 || seen[0] != 1 || seen[1] != 1 || seen[2] != 1 {
			t.Errorf("%s: ranks told %v times", c.name, seen)
		}
	}
}

package launcher

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// Every line of every worker is on the disk as far as it goes, on the console, or on both.
func TestFullDisk(t *testing.T) { testkit.SmallDisk(t, fillDisk) }

func fillDisk(t *testing.T, dir string) {
	const workers, count = 3, 4000
	s, con := spec(t, workers)
	s.Argv = []string{"/bin/sh", "-c", `seq -f "rank $RANK out %.0f" 4000; seq -f "rank $RANK err %.0f" 4000 >&2`}
	var mu sync.Mutex
	var warnings []string
	s.Warn = func(msg string) { mu.Lock(); defer mu.Unlock(); warnings = append(warnings, msg) }
	s.Logs = LogSpec{Dir: dir, Redirect: StdMap{Default: Both}, StdoutFilters: []string{"00"}, MaxSize: 8 << 10}
	for _, e := range exits(t, start(t, s)) {
		if e.Failed() {
			t.Errorf("%+v", e)
		}
	}
	if len(warnings) != 1 || !strings.HasSuffix(warnings[0], "no space left on device") {
		t.Errorf("warnings %q", warnings)
	}
	console := map[string]bool{}
	for line := range strings.Lines(con.String()) {
		console[line] = true
	}
	files := map[string]bool{} // with the prefix
	for name, text := range contents(t, dir) {
		prefix := ""
		if rank, _, in := strings.Cut(name, "/"); in {
			prefix = "[" + rank + "] "
		}
		for line := range strings.Lines(text) {
			files[prefix+line] = true
		}
	}
	for rank := range workers {
		for i := range 2 * count {
			line := fmt.Sprintf("[%d] rank %d %s %d\n", rank, rank, []string{"out", "err"}[i%2], i/2+1)
			if !console[line] && !files[line] {
				t.Fatalf("%q is lost", line)
			}
		}
	}
}

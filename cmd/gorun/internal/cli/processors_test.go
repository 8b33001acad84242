package cli

import (
	"testing"

	"github.com/gorun/gorun/launcher"
)

func TestThreadsNote(t *testing.T) {
	unset := host{lookup: func(string) (string, bool) { return "", false }}
	set := host{lookup: func(string) (string, bool) { return "2", true }}
	for _, c := range []struct {
		name   string
		o      flags
		python bool
		want   bool
	}{
		{"several workers", flags{host: unset, nproc: 2}, true, true},
		{"one worker", flags{host: unset, nproc: 1}, true, false},
		{"inherited", flags{host: set, nproc: 2}, true, false},
		{"asked for", flags{host: unset, nproc: 2, threads: autoThreads}, true, false},
		{"no Python", flags{host: unset, nproc: 2}, false, false},
	} {
		if note := c.o.threadsNote(&launcher.Program{Python: c.python}); (note != "") != c.want {
			t.Errorf("%s: %q", c.name, note)
		}
	}
}

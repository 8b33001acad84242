package cli

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/gorun/gorun/launcher"
)

func TestEnviron(t *testing.T) {
	for _, c := range []struct {
		name           string
		nproc, threads int
		in, want       []string
	}{
		{"one worker has all cores", 1, 0, []string{"A=1"}, []string{"A=1"}},
		{"several have one thread each", 2, 0, []string{"A=1"}, []string{"A=1", "OMP_NUM_THREADS=1"}},
		{"inherited", 2, 0, []string{"OMP_NUM_THREADS=", "A=1"}, []string{"OMP_NUM_THREADS=", "A=1"}},
		{"asked for", 1, 3, []string{"OMP_NUM_THREADS=8", "A=1"}, []string{"A=1", "OMP_NUM_THREADS=3"}},
	} {
		o := options{nproc: c.nproc}
		before := slices.Clone(c.in)
		if got := o.environ(c.in, c.threads); !slices.Equal(got, c.want) || !slices.Equal(c.in, before) {
			t.Errorf("%s: %q, want %q; the input is now %q", c.name, got, c.want, c.in)
		}
	}
}

func TestThreadsNote(t *testing.T) {
	unset := host{lookup: func(string) (string, bool) { return "", false }}
	set := host{lookup: func(string) (string, bool) { return "2", true }}
	for _, c := range []struct {
		name   string
		o      options
		python bool
		want   bool
	}{
		{"several workers", options{host: unset, nproc: 2}, true, true},
		{"one worker", options{host: unset, nproc: 1}, true, false},
		{"inherited", options{host: set, nproc: 2}, true, false},
		{"asked for", options{host: unset, nproc: 2, threads: autoThreads}, true, false},
		{"no Python", options{host: unset, nproc: 2}, false, false},
	} {
		if note := c.o.threadsNote(&launcher.Program{Python: c.python}); (note != "") != c.want {
			t.Errorf("%s: %q", c.name, note)
		}
	}
}

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		name    string
		visible string // "-": the variable is not set
		root    fs.FS
		nproc   int
		want    []string // nil: an error
	}{
		{"none: numbers all the same", "-", fstest.MapFS{}, 2, []string{"0", "1"}},
		{"the list's", "3,5,7", fstest.MapFS{}, 2, []string{"3", "5"}},
		{"a list too short", "3", fstest.MapFS{}, 2, nil},
		{"the machine's", "-", bare().root, 2, []string{"0", "1"}},
		{"too few", "-", bare().root, 3, nil},
	} {
		o := options{nproc: c.nproc, given: map[string]string{}, host: host{root: c.root, lookup: func(name string) (string, bool) {
			return c.visible, name == "CUDA_VISIBLE_DEVICES" && c.visible != "-"
		}}}
		d, err := o.devices()
		if c.want == nil && exitCode(err) != 2 || c.want != nil && (err != nil || d.Variable != "CUDA_VISIBLE_DEVICES" || !slices.Equal(d.Names, c.want)) {
			t.Errorf("%s: %+v, %v", c.name, d, err)
		}
	}
}

package bootstrap

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionIn(t *testing.T) {
	other := debug.Module{Path: "example.com/train", Version: "v1.0.0"}
	of := func(version string) *debug.Module { return &debug.Module{Path: modulePath, Version: version} }
	replaced := func(path, version string) *debug.Module {
		m := of("v0.1.0")
		m.Replace = &debug.Module{Path: path, Version: version}
		return m
	}
	for want, info := range map[string]debug.BuildInfo{
		"v0.1.0":                  {Main: other, Deps: []*debug.Module{&other, of("v0.1.0")}},
		"v0.0.0-20261127-abc":     {Main: *of("v0.0.0-20261127-abc+dirty")},
		"example.com/fork@v0.1.1": {Main: other, Deps: []*debug.Module{replaced("example.com/fork", "v0.1.1")}},
	} {
		if got := versionIn(&info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for name, info := range map[string]debug.BuildInfo{
		"without a repository": {Main: *of("(devel)")},
		"a folder":             {Main: other, Deps: []*debug.Module{replaced("../gorun", "")}},
		"no module":            {Main: other},
	} {
		if got := versionIn(&info); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestRanksOfOtherVersions: ranks whose versions are known are refused if these differ, by each of them.
func TestRanksOfOtherVersions(t *testing.T) {
	for _, c := range []struct {
		versions string // of ranks 0 and 1
		refused  bool
	}{
		{"v0.1.0 v0.1.0", false},
		{"v0.1.0 v0.1.1", true},
		{"v0.1.0 ?", false}, // before versions were exchanged, or not known
		{"? ?", false},
	} {
		w := worldDoc{Ranks: []Info{self("127.0.0.1:1"), self("127.0.0.1:2")}}
		for i, v := range strings.Fields(c.versions) {
			w.Ranks[i].Version = strings.Trim(v, "?")
		}
		for rank, me := range w.Ranks {
			err := w.check(place{rank: rank, size: 2}, me)
			if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "has another version of comm, v0.1.") {
				t.Errorf("%s: rank %d: %v", c.versions, rank, err)
			}
		}
	}
}

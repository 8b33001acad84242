package bootstrap

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/gorun/gorun/comm/store/memstore"
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

// TestRanksOfOtherVersions: ranks whose versions are known are refused if these differ, by each of them. That comes first: with another version, all
// else may differ.
func TestRanksOfOtherVersions(t *testing.T) {
	defer func(own func() string) { version = own }(version)
	for _, c := range []struct {
		versions [2]string // "": not known, or of a time before versions were exchanged
		refused  bool
	}{
		{[2]string{"v0.1.0", "v0.1.0"}, false},
		{[2]string{"v0.1.0", "v0.1.1"}, true},
		{[2]string{"v0.1.0", ""}, false},
		{[2]string{"", ""}, false},
	} {
		var ranks [2]Info
		for i, v := range c.versions {
			version = func() string { return v }
			ranks[i] = self(fmt.Sprint("127.0.0.1:", i+1))
			ranks[i].Host, ranks[i].TLS = fmt.Sprint("host", i), c.refused && i == 0
		}
		s := memstore.New()
		var wg sync.WaitGroup
		for rank, other := range []int{1, 0} {
			wg.Go(func() {
				_, err := meet(t.Context(), s, 1, place{rank: rank, size: 2}, ranks[rank])
				want := fmt.Sprintf("comm: Init: rank %d on host%d has another version of comm: %s there, %s here: build all ranks from the same version",
					other, other, c.versions[other], c.versions[rank])
				if (err != nil) != c.refused || c.refused && err.Error() != want {
					t.Errorf("%q: rank %d: %v, want %t, %s", c.versions, rank, err, c.refused, want)
				}
			})
		}
		wg.Wait()
	}
}

package release

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuildOf(t *testing.T) {
	const hash = "3f48b4a8e5bc5873b0a85c833ceb1dc789a10fa6"
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "-trimpath", Value: "true"}, {Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: hash},
			{Key: "vcs.time", Value: "2026-11-23T13:51:14Z"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for _, tt := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         Build // what it says of the commit
	}{
		{"nothing is known, as in a test or with -buildvcs=false", "(devel)", nil, Build{}},
		{"in a checkout", "v0.1.1-0.20261123135114-3f48b4a8e5bc", settings("false"), Build{Commit: hash, Date: "2026-11-23T13:51:14Z"}},
		{"in a checkout with changes", "v0.1.1-0.20261123135114-3f48b4a8e5bc+dirty", settings("true"), Build{Commit: hash, Date: "2026-11-23T13:51:14Z", Modified: true}},
		{"of a release, in a checkout", "v0.1.0", settings("false"), Build{Commit: hash, Date: "2026-11-23T13:51:14Z"}},
		{"go install of a release", "v0.1.0", nil, Build{}},
		{"go install of a commit before all releases", "v0.0.0-20261123135114-3f48b4a8e5bc", nil, Build{Commit: hash[:12], Date: "2026-11-23T13:51:14Z"}},
		{"go install of a commit after a release", "v0.1.1-0.20261123135114-3f48b4a8e5bc", nil, Build{Commit: hash[:12], Date: "2026-11-23T13:51:14Z"}},
		{"go install of a commit after a prerelease", "v0.1.0-rc.1.0.20261123135114-3f48b4a8e5bc", nil, Build{Commit: hash[:12], Date: "2026-11-23T13:51:14Z"}},
		{"a time that is none", "v0.0.0-20269923135114-3f48b4a8e5bc", nil, Build{}},
	} {
		want := tt.want
		want.Version, want.Go, want.OS, want.Arch = Version, runtime.Version(), runtime.GOOS, runtime.GOARCH
		got := buildOf(&debug.BuildInfo{Main: debug.Module{Version: tt.module}, Settings: tt.settings})
		if got != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, want)
		}
	}
}

func TestTextOfABuild(t *testing.T) {
	b := Build{Version: "1.2.3", Go: "go1.26.8", OS: "linux", Arch: "arm64"}
	if got, want := b.Text(), "gorun 1.2.3\ngo1.26.8 linux/arm64\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Commit, b.Date, b.Modified = "3f48b4a8e5bc", "2026-11-23T13:51:14Z", true
	if got, want := b.Text(), "gorun 1.2.3\ncommit 3f48b4a8e5bc of 2026-11-23T13:51:14Z, with uncommitted changes\ngo1.26.8 linux/arm64\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got, err := json.Marshal(b)
	want := `{"version":"1.2.3","commit":"3f48b4a8e5bc","modified":true,"date":"2026-11-23T13:51:14Z","go":"go1.26.8","os":"linux","arch":"arm64"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

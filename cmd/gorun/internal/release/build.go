package release

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// A Build is what is known of how this binary was made. The JSON names are documented in docs/releases.md.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // in hexadecimal: all 40 digits, or 12 if go install has built it; empty: not known
	Modified bool   `json:"modified,omitempty"` // the files differed from those of the commit
	Date     string `json:"date,omitempty"`     // of the commit, in UTC, as RFC 3339; empty: not known
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// ThisBuild returns what is known of this binary.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

// pseudoVersion matches the end of a version that go install has made of a commit: its time, and the first digits of
// its hash.
var pseudoVersion = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(\+dirty)?$`)

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if m := pseudoVersion.FindStringSubmatch(info.Main.Version); m != nil {
		if at, err := time.Parse("20060102150405", m[1]); err == nil {
			b.Date, b.Commit, b.Modified = at.Format(time.RFC3339), m[2], m[3] != ""
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Text is what gorun version prints for people.
func (b Build) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "gorun %s\n", b.Version)
	if b.Commit != "" {
		changed := ""
		if b.Modified {
			changed = ", with uncommitted changes"
		}
		fmt.Fprintf(&out, "commit %s of %s%s\n", b.Commit, b.Date, changed)
	}
	fmt.Fprintf(&out, "%s %s/%s\n", b.Go, b.OS, b.Arch)
	return out.String()
}

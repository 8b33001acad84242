package bootstrap

import (
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

const modulePath = "github.com/gorun/gorun"

// version returns which version of package comm this program has, or "" if that is not known.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return versionIn(info)
	}
	return ""
})

// versionIn returns the version of this module in a program's build info. It is "" if a folder replaces the module, and if Go has built the module
// itself without reading its repository.
func versionIn(info *debug.BuildInfo) string {
	modules := append([]*debug.Module{&info.Main}, info.Deps...)
	i := slices.IndexFunc(modules, func(m *debug.Module) bool { return m.Path == modulePath })
	if i < 0 {
		return ""
	}
	switch m := modules[i]; {
	case m.Replace != nil && m.Replace.Version != "":
		return m.Replace.Path + "@" + m.Replace.Version
	case m.Replace != nil || m.Version == "(devel)":
		return ""
	default:
		return strings.TrimSuffix(m.Version, "+dirty") // a file that has changed need not be of package comm
	}
}

// differs reports whether two versions are known and not the same. Such ranks may disagree about which messages an operation has.
func differs(a, b string) bool { return a != "" && b != "" && a != b }

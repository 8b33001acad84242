package rendezvous

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings are what must be the same on every node of a job, by name.
type Settings map[string]string

// Conflict says where the settings of two nodes differ, in one line that names every such setting, both values and
// both hosts; nil: nowhere.
func (s Settings) Conflict(host string, other Settings, otherHost string) error {
	names := maps.Clone(s)
	if names == nil {
		names = Settings{}
	}
	maps.Copy(names, other)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		mine, theirs := s.show(name), other.show(name)
		if mine != theirs {
			differ = append(differ, fmt.Sprintf("%s is %s on %s and %s on %s", name, mine, host, theirs, otherHost))
		}
	}
	if differ == nil {
		return nil
	}
	return fmt.Errorf("the nodes of a job need the same settings: %s", strings.Join(differ, "; "))
}

func (s Settings) show(name string) string {
	value, set := s[name]
	if !set {
		return "not set"
	}
	return fmt.Sprintf("%q", value)
}

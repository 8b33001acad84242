package rendezvous

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Settings are the settings that must be the same on every node of a job, by name.
type Settings map[string]string

// Conflict returns one line that says where a node's settings differ from those of its job, which another node set; nil: nowhere.
func (s Settings) Conflict(job Settings, setBy string) error {
	names := maps.Collect(maps.All(s))
	maps.Copy(names, job)
	var mine, theirs []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if m, t := s.show(name), job.show(name); m != t {
			mine, theirs = append(mine, m), append(theirs, t)
		}
	}
	if mine == nil {
		return nil
	}
	return fmt.Errorf("the nodes of a job need the same settings; this node: %s; the job: %s (set by %s)",
		strings.Join(mine, ", "), strings.Join(theirs, ", "), setBy)
}

// show returns a setting, in quotes if it is not a single word.
func (s Settings) show(name string) string {
	value, set := s[name]
	switch odd := func(r rune) bool { return r <= ' ' || r == '"' || r == ',' || r == ';' || !strconv.IsPrint(r) }; {
	case !set:
		return name + " not set"
	case value == "" || strings.ContainsFunc(value, odd):
		return fmt.Sprintf("%s %q", name, value)
	default:
		return name + " " + value
	}
}

package env

import (
	"slices"
	"strings"
)

// Merge returns the variables ("NAME=value") of an environment and more. Of one that occurs several times, the last
// value counts.
func Merge(environ, more []string) (merged []string) {
	name := func(kv string) string { n, _, _ := strings.Cut(kv, "="); return n }
	all := slices.Concat(environ, more)
	last := make(map[string]int, len(all))
	for i, kv := range all {
		last[name(kv)] = i
	}
	for i, kv := range all {
		if last[name(kv)] == i {
			merged = append(merged, kv)
		}
	}
	return merged
}

package agent

import "regexp"

// DefaultPrefix is the template of what stands before a worker's lines if Config.Prefix is nil.
const DefaultPrefix = "[${rank}] "

var reference = regexp.MustCompile(`\$(?:\$|[a-zA-Z_][a-zA-Z0-9_]*|\{[a-zA-Z_][a-zA-Z0-9_]*\})`)

// expandPrefix puts values in the place of $name and ${name}, and $ in that of $$. A name without a value, and any
// other $, stay as they are.
func expandPrefix(template string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(template, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		name := ref[1:]
		if name[0] == '{' {
			name = name[1 : len(name)-1]
		}
		if value, ok := values[name]; ok {
			return value
		}
		return ref
	})
}

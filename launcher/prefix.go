package launcher

import (
	"fmt"
	"strings"
)

// ExpandPrefix replaces $name and ${name} in template with the values of those names, and $$ with $. A name is an ASCII
// letter or underscore, followed by letters, digits and underscores. A name without a value, and a $ that begins no
// name, stay as they are. These are the rules of Python's string.Template.safe_substitute, which torchrun applies to
// TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE.
func ExpandPrefix(template string, values map[string]string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(template, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, length := reference(after)
		value, known := values[name]
		switch {
		case name == "$":
			value = "$"
		case name == "" || !known:
			value = "$" + after[:length]
		}
		out.WriteString(value)
		template = after[length:]
	}
}

// reference reads what follows a $: the name, and its length in bytes with its braces. For a second $, the
// name is "$". An empty name means that there is none.
func reference(s string) (name string, length int) {
	if strings.HasPrefix(s, "$") {
		return "$", 1
	}
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		n := nameLength(inner)
		if n == 0 || !strings.HasPrefix(inner[n:], "}") {
			return "", 0
		}
		return inner[:n], n + len("{}")
	}
	n := nameLength(s)
	return s[:n], n
}

func nameLength(s string) int {
	for i := range len(s) {
		c := s[i] | 0x20 // lower case
		letter := c >= 'a' && c <= 'z' || s[i] == '_'
		if digit := s[i] >= '0' && s[i] <= '9'; !letter && (!digit || i == 0) {
			return i
		}
	}
	return len(s)
}

// paint returns a worker's prefix in its rank's color.
func paint(prefix string, rank int, color bool) []byte {
	if !color || prefix == "" {
		return []byte(prefix)
	}
	hues := [...]int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94} // not red, which means an error elsewhere
	text := strings.TrimRight(prefix, " ")
	return fmt.Appendf(nil, "\x1b[%dm%s\x1b[0m%s", hues[rank%len(hues)], text, prefix[len(text):])
}

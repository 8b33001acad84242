package cli

import (
	"regexp"
	"strings"
)

// The escape sequences with which a terminal shows text in another color.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// level finds the level in a line of gorun's log.
var level = regexp.MustCompile(`^[0-9:.]+ \[(ERROR|WARN)\]`)

// paintLog paints the levels in lines of gorun's log: errors red, warnings yellow.
func paintLog(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if at := level.FindStringSubmatchIndex(line); at != nil {
			hue := yellow
			if line[at[2]:at[3]] == "ERROR" {
				hue = red
			}
			line = line[:at[2]] + hue + line[at[2]:at[3]] + plain + line[at[3]:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// paintError paints what explain returns: the name of gorun in a line, or what a summary begins with and the heading of its root cause.
func paintError(text string) string {
	if rest, ok := strings.CutPrefix(text, "gorun:"); ok {
		return bold + red + "gorun:" + plain + rest
	}
	var b strings.Builder
	for number, text := range strings.Split(text, "\n") {
		if number > 0 {
			b.WriteByte('\n')
		}
		if number == 1 || strings.HasPrefix(text, "Root Cause ") {
			text = bold + red + text + plain
		}
		b.WriteString(text)
	}
	return b.String()
}

package cli

import (
	"strings"

	"github.com/hashicorp/go-hclog"
)

// The escape sequences with which a terminal shows text in another color.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	bold   = "\x1b[1m"
	plain  = "\x1b[0m"
)

// hues are the colors of levels in gorun's log.
var hues = map[hclog.Level]string{hclog.Error: red, hclog.Warn: yellow}

// paintLevel paints the level of a line of gorun's log, which has it behind the time: errors red, warnings yellow.
func paintLevel(line string, level hclog.Level) string {
	if hue, ok := hues[level]; ok {
		name := strings.ToUpper(level.String())
		return strings.Replace(line, name, hue+name+plain, 1)
	}
	return line
}

// heading paints what a reader is to see first.
func heading(text string, color bool) string {
	if color {
		return bold + red + text + plain
	}
	return text
}

// paintSummary paints what a summary begins with, and the heading of its root cause.
func paintSummary(text string, color bool) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = heading(line, color && (i == 1 || strings.HasPrefix(line, "Root Cause ")))
	}
	return strings.Join(lines, "\n")
}

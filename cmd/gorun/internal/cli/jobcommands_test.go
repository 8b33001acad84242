package cli

import (
	"testing"

	"github.com/gorun/gorun/cmd/gorun/internal/control"
)

// TestLogLine: a line that has not ended is shown on a terminal only, where the next output erases it.
func TestLogLine(t *testing.T) {
	for _, c := range []struct {
		unfinished, onTerminal bool
		want                   string
	}{
		{false, false, "[3] 7%\n"},
		{true, false, ""},
		{true, true, "\x1b[K\x1b[?7l[3] 7%\x1b[?7h\r"},
		{false, true, "\x1b[K[3] 7%\n"},
	} {
		if got := logLine(control.Line{Rank: 3, Text: "7%", Unfinished: c.unfinished}, c.onTerminal); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

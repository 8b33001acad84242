package cli

import (
	"io"
	"strings"

	"github.com/gorun/gorun/agent"
)

// A printableWriter makes lines safe for a terminal, because they may contain text from an etcd, another node or a
// worker. Each Write must consist of whole lines.
type printableWriter struct {
	to    io.Writer
	color bool // paint the levels of log lines
}

func (w printableWriter) Write(b []byte) (int, error) {
	text := printableLines(string(b))
	if w.color {
		text = paintLog(text)
	}
	if _, err := io.WriteString(w.to, text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// printableLines escapes all control characters but line breaks and tabs.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = agent.Printable(line)
	}
	return strings.Join(lines, "\n")
}

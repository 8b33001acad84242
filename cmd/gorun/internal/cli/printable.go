package cli

import (
	"io"
	"strings"

	"github.com/gorun/gorun/agent"
)

// A printableWriter makes lines safe for a terminal, because they may contain text from an etcd, another node or a
// worker. Each Write must consist of whole lines.
type printableWriter struct{ to io.Writer }

func (w printableWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, printableLines(string(b))); err != nil {
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

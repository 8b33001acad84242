package cli

import (
	"io"
	"strings"

	"github.com/gorun/gorun/agent"
)

// A printableWriter makes lines safe for a terminal: the texts in them may be of an etcd, another node or a worker.
// Each Write is whole lines.
type printableWriter struct{ to io.Writer }

func (w printableWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(w.to, printableLines(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// printableLines leaves nothing but line ends and tabs that a terminal could act upon.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = agent.Printable(line)
	}
	return strings.Join(lines, "\n")
}

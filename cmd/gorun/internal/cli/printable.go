package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/agent"
)

// A printableWriter makes lines of the log safe, because they may contain text from an etcd, another node or a worker: such a text can
// neither act upon a terminal nor look like another line of the log. Each Write must be one line. hclog calls LevelWrite.
type printableWriter struct {
	to    io.Writer
	color bool // paint the levels of log lines
}

func (w printableWriter) Write(b []byte) (int, error) { return w.LevelWrite(hclog.NoLevel, b) }

func (w printableWriter) LevelWrite(level hclog.Level, b []byte) (int, error) {
	text := agent.Printable(strings.TrimSuffix(string(b), "\n")) + "\n"
	if w.color {
		text = paintLevel(text, level)
	}
	if _, err := io.WriteString(w.to, text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// say writes one line that may contain text of others.
func say(to io.Writer, format string, args ...any) error {
	_, err := io.WriteString(to, agent.Printable(fmt.Sprintf(format, args...))+"\n")
	return err
}

// oneLine joins the lines of a text.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

// printableLines escapes all control characters but line breaks and tabs.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = agent.Printable(line)
	}
	return strings.Join(lines, "\n")
}

// show prints a document as JSON, or as text for people.
func show(to io.Writer, asJSON bool, document any, text func() string) error {
	if asJSON {
		return printJSON(to, document)
	}
	_, err := io.WriteString(to, text())
	return err
}

// printJSON prints a document for programs, and for people who look at it.
func printJSON(to io.Writer, document any) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(document)
}

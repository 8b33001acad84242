package cli

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gorun/gorun/cmd/gorun/internal/launch"
)

// TestTextOfOthersIsPrintable: what etcd, another node, a host or a worker says cannot act upon the terminal, and is not another line:
// not in the log, its messages and values alike, nor as the last error.
func TestTextOfOthersIsPrintable(t *testing.T) {
	for _, evil := range []string{
		"node \x1b]0;title\x07\x1b[2J\u009b31m\u202e is\rlost", "node\n12:00:00.000 [ERROR] gorun: forged", "node\r\n\x1b[31mforged", "node\u2028forged",
		"node\n", "\nnode", "\xff\n\xfe node",
	} {
		for name, write := range map[string]func(*slog.Logger, io.Writer){
			"a message": func(l *slog.Logger, _ io.Writer) { l.Warn("starting the workers again: " + evil) },
			"a text":    func(l *slog.Logger, _ io.Writer) { l.Error("x", "from", evil) },
			"an error": func(l *slog.Logger, _ io.Writer) {
				l.Info("x", "error", errors.Join(errors.New(evil), errors.New("y")))
			},
			"texts":               func(l *slog.Logger, _ io.Writer) { l.Info("x", "nodes", []string{evil, evil}) },
			"a struct":            func(l *slog.Logger, _ io.Writer) { l.Info("x", "node", struct{ Host string }{evil}) },
			"a value of a logger": func(l *slog.Logger, _ io.Writer) { l.With("host", evil).Info("x") },
			"a key":               func(l *slog.Logger, _ io.Writer) { l.Info("x", evil, 1) },
			"a group":             func(l *slog.Logger, _ io.Writer) { l.WithGroup(evil).Info("x") },
			"an answer":           func(_ *slog.Logger, w io.Writer) { _ = say(w, "job x is stopped by %s", evil) },
			"the last error":      func(_ *slog.Logger, w io.Writer) { _, _ = io.WriteString(w, explain(self, errors.New(evil), false)) },
		} {
			var said strings.Builder
			logger, err := newLogger(&said, "", false)
			if err != nil {
				t.Fatal(err)
			}
			write(logger, &said)
			if text := said.String(); strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e\u2028") || !utf8.ValidString(text) {
				t.Errorf("%s: the terminal gets %q", name, text)
			} else if strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") || !strings.Contains(text, "node") {
				t.Errorf("%s: %q is not one line", name, text)
			}
		}
	}
	evil := "gorun: host n1: \x1b]0;title\x07\u009b31m\u202e is\rlost\nthe end" // this one may have several lines
	if text := explain(self, &launchedError{launch.Result{Code: 1, Summary: evil}}, false); strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e") || strings.Count(text, "\n") != 2 {
		t.Errorf("the terminal gets %q", text)
	}
}

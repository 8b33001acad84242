package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/gorun/gorun/cmd/gorun/internal/launch"
)

// What etcd or another node says cannot act upon the terminal: not in the log, its messages and values alike, nor as the last error.
func TestTextOfOthersIsPrintable(t *testing.T) {
	const evil = "node \x1b]0;title\x07\x1b[2J\u009b31m\u202e is\rlost"
	var said strings.Builder
	logger, err := newLogger(&said, "", false)
	if err != nil {
		t.Fatal(err)
	}
	logger.Warn("starting the workers again: "+evil, "from", evil, "error", errors.New(evil))
	logger.WithGroup("etcd").Info(evil)
	said.WriteString(explain(errors.New(evil), false))
	said.WriteString(explain(&launchedError{launch.Result{Code: 1, Text: "gorun: host n1: " + evil}}, false))
	text := said.String()
	if strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e") {
		t.Errorf("the terminal gets %q", text)
	}
	if n := strings.Count(text, "\n"); n != 4 || strings.Count(text, "node ") != 6 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

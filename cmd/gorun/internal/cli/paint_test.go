package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/death"
)

func TestPaint(t *testing.T) {
	var log strings.Builder
	logger, err := newLogger(&log, "", true)
	if err != nil {
		t.Fatal(err)
	}
	logger.Error("failed: [ERROR]")
	logger.Warn("a [ERROR]")
	logger.Info("[ERROR]")
	for i, want := range []string{
		" [\x1b[31mERROR\x1b[0m] gorun: failed: [ERROR]", " [\x1b[33mWARN\x1b[0m]  gorun: a [ERROR]", " [INFO]  gorun: [ERROR]",
	} {
		if got := lines(log.String())[i]; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	const heading = "\x1b[1m\x1b[31m"
	if got := explain(self, errors.New("a gorun: \x1b[31mb"), true); got != heading+"gorun:\x1b[0m a gorun: b\n" {
		t.Errorf("%q", got)
	}
	failed := &agent.WorkerError{Program: "prog\x1b[2J", Root: death.Death{ExitCode: 1, Stderr: []string{"Root Cause x"}}}
	want := ""
	for i, line := range lines(failed.Summary()) {
		if i == 1 || i == 6 {
			line = heading + line + "\x1b[0m"
		}
		want += line + "\n"
	}
	if got := explain(self, failed, true); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

package cli

import (
	"errors"
	"testing"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/death"
)

func TestPaint(t *testing.T) {
	for text, want := range map[string]string{
		"15:04:05.678 [ERROR] gorun: failed: rank=1\n": "15:04:05.678 [\x1b[31mERROR\x1b[0m] gorun: failed: rank=1\n",
		"15:04:05.678 [WARN]  gorun: a\n[WARN] b\n":    "15:04:05.678 [\x1b[33mWARN\x1b[0m]  gorun: a\n[WARN] b\n",
		"15:04:05.678 [INFO]  gorun: [ERROR]\n":        "15:04:05.678 [INFO]  gorun: [ERROR]\n",
	} {
		if got := paintLog(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	const heading = "\x1b[1m\x1b[31m"
	if got := explain(errors.New("a gorun: \x1b[31mb"), true); got != heading+"gorun:\x1b[0m a gorun: b\n" {
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
	if got := explain(failed, true); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

package cli

import (
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLog: hclog's lines, with the names of groups, attributes in their order, and trace below debug.
func TestLog(t *testing.T) {
	for _, c := range []struct{ level, want string }{
		{"trace", "[TRACE] gorun: a|[DEBUG] gorun: b: n=1 d=1.5s|[INFO]  gorun.etcd: c: port=clients error=\"no disk\"|[WARN]  gorun: d|[ERROR] gorun: e|[DEBUG] gorun: f: x=y|"},
		{"debug", "[DEBUG] gorun: b: n=1 d=1.5s|[INFO]  gorun.etcd: c: port=clients error=\"no disk\"|[WARN]  gorun: d|[ERROR] gorun: e|[DEBUG] gorun: f: x=y|"},
		{"info", "[INFO]  gorun.etcd: c: port=clients error=\"no disk\"|[WARN]  gorun: d|[ERROR] gorun: e|"},
		{"error", "[ERROR] gorun: e|"},
	} {
		t.Setenv("LOGLEVEL", c.level)
		var out strings.Builder
		l, err := newLogger(&out, "", false)
		if err != nil {
			t.Fatal(err)
		}
		l.Log(t.Context(), slog.LevelDebug-4, "a")
		l.Debug("b", "n", 1, "d", 1500*time.Millisecond)
		l.WithGroup("etcd").With("port", "clients").Info("c", "error", errors.New("no disk"))
		l.Warn("d")
		l.Error("e")
		atDebug(l).With("x", "y").Warn("f")
		got := regexp.MustCompile(`(?m)^[\d:.]+ `).ReplaceAllString(out.String(), "")
		if got = strings.ReplaceAll(got, "\n", "|"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.level, got, c.want)
		}
	}
}

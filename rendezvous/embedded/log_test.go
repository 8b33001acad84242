package embedded

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestLog: what etcd says, as the agent does.
func TestLog(t *testing.T) {
	for level, want := range map[slog.Level]string{
		levelTrace:      "[DEBUG-4]small: n=1\n[DEBUG] news: a=x b=\"[1 2]\"\n[DEBUG] hm: a=x\n[WARN]  bad: a=x error=\"no disk\"\n",
		slog.LevelDebug: "[DEBUG] news: a=x b=\"[1 2]\"\n[DEBUG] hm: a=x\n[WARN]  bad: a=x error=\"no disk\"\n",
		slog.LevelInfo:  "[WARN]  bad: a=x error=\"no disk\"\n",
		slog.LevelError: "",
	} {
		var out strings.Builder
		l := newLogger(testkit.LogLines(&out, level), func(error) {})
		l.Debug("small", zap.Int("n", 1))
		l = l.With(zap.String("a", "x"))
		l.Info("news", zap.Ints("b", []int{1, 2}))
		l.Warn("hm")
		l.Error("bad", zap.Error(errors.New("no disk")))
		if out.String() != want {
			t.Errorf("%v:\n got %q\nwant %q", level, out.String(), want)
		}
	}
}

// TestHarmless: what etcd calls an error when a learner gets its vote is no warning.
func TestHarmless(t *testing.T) {
	var out strings.Builder
	l := newLogger(testkit.LogLines(&out, slog.LevelInfo), func(error) {})
	l.Error("failed to update storage version")
	l.Error("rejecting promote learner: learner is not ready", zap.Float64("learner-ready-percent", 0))
	l.Error("Validation on configuration change failed", zap.Error(membership.ErrMemberNotLearner))
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
	l.Error("Validation on configuration change failed", zap.Error(membership.ErrIDRemoved))
	if want := "[WARN]  Validation on configuration change failed: error=\"" + membership.ErrIDRemoved.Error() + "\"\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestFatal: what would end the process ends the goroutine, and is told with its cause.
func TestFatal(t *testing.T) {
	cause := errors.New("no disk")
	for name, say := range map[string]func(*zap.Logger){
		"fatal": func(l *zap.Logger) { l.Fatal("cannot save", zap.Error(cause)) },
		"panic": func(l *zap.Logger) { l.Panic("cannot save", zap.Error(cause)) },
	} {
		told, ended := make(chan error, 1), make(chan bool)
		go func() {
			defer close(ended)
			say(newLogger(slog.New(slog.DiscardHandler), func(err error) { told <- err }))
			t.Errorf("%s: the goroutine goes on", name)
		}()
		<-ended
		if err := <-told; !errors.Is(err, cause) || err.Error() != "cannot save: no disk" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

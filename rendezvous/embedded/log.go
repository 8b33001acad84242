package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"

	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger returns the logger of etcd. When etcd would end the process, fail gets the reason, and only the goroutine ends that
// would have ended the process.
func newLogger(to *slog.Logger, fail func(error)) *zap.Logger {
	hook := failHook(fail)
	return zap.New(&logCore{to: to}, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

// levelTrace is below slog's levels.
const levelTrace = slog.LevelDebug - 4

// logCore writes to a logger of the agent. etcd's messages are for debugging: only its errors are warnings.
type logCore struct {
	to     *slog.Logger
	fields []zapcore.Field
}

func (c *logCore) level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelWarn
	case l >= zapcore.InfoLevel:
		return slog.LevelDebug
	}
	return levelTrace
}

func (c *logCore) Enabled(l zapcore.Level) bool {
	return c.to.Enabled(context.Background(), c.level(l))
}

func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	return &logCore{to: c.to, fields: slices.Concat(c.fields, fields)}
}

func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// isHarmless reports whether etcd calls an error what happens in every cluster that is new, or when a learner gets its vote: it is asked
// for again until it is there, too early or once too often.
func isHarmless(e zapcore.Entry, fields []zapcore.Field) bool {
	switch e.Message {
	case "failed to update storage version", "rejecting promote learner: learner is not ready":
		return true
	case "Validation on configuration change failed":
		return slices.ContainsFunc(fields, func(f zapcore.Field) bool {
			err, is := f.Interface.(error)
			return is && errors.Is(err, membership.ErrMemberNotLearner)
		})
	}
	return false
}

func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if isHarmless(e, fields) {
		e.Level = zapcore.DebugLevel
	}
	values := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.fields, fields) {
		f.AddTo(values)
	}
	args := make([]any, 0, 2*len(values.Fields))
	for _, k := range slices.Sorted(maps.Keys(values.Fields)) {
		args = append(args, k, values.Fields[k])
	}
	c.to.Log(context.Background(), c.level(e.Level), e.Message, args...)
	return nil
}

func (c *logCore) Sync() error { return nil }

// A failHook is called with what etcd cannot go on after.
type failHook func(error)

// OnWrite does not return: etcd's code does not expect it to.
func (h failHook) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(ce.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%s: %w", ce.Message, cause)
		}
	}
	h(err)
	runtime.Goexit()
}

package cli

import (
	"context"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// A logHandler passes log records to hclog, which writes one line for each. A group extends the name of the logger: "gorun.etcd".
type logHandler struct {
	to        hclog.Logger
	debugOnly bool // every message is one of the level debug
}

// level returns the level in hclog, which has trace below debug.
func (h logHandler) level(l slog.Level) hclog.Level {
	switch {
	case l < slog.LevelDebug:
		return hclog.Trace
	case l < slog.LevelInfo || h.debugOnly:
		return hclog.Debug
	case l < slog.LevelWarn:
		return hclog.Info
	case l < slog.LevelError:
		return hclog.Warn
	default:
		return hclog.Error
	}
}

func (h logHandler) Enabled(_ context.Context, l slog.Level) bool {
	return h.to.GetLevel() <= h.level(l)
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	var args []any
	r.Attrs(func(a slog.Attr) bool {
		args = append(args, a.Key, logged(a.Value))
		return true
	})
	h.to.Log(h.level(r.Level), oneLine(r.Message), args...)
	return nil
}

// logged returns a value as hclog gets it, which would write several lines as several lines of the log.
func logged(v slog.Value) any {
	if text := v.String(); strings.Contains(text, "\n") {
		return oneLine(text)
	}
	return v.Any()
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.to = h.to.With(a.Key, logged(a.Value))
	}
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler {
	h.to = h.to.Named(name)
	return h
}

// atDebug returns a logger whose messages all have the level debug.
func atDebug(logger *slog.Logger) *slog.Logger {
	h, _ := logger.Handler().(logHandler) // there is no other
	h.debugOnly = true
	return slog.New(h)
}

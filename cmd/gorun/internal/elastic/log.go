package elastic

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// A handler passes on what is logged to it.
type handler struct {
	to   hclog.Logger
	args []any
}

func level(l slog.Level) hclog.Level {
	switch {
	case l >= slog.LevelError:
		return hclog.Error
	case l >= slog.LevelWarn:
		return hclog.Warn
	case l >= slog.LevelInfo:
		return hclog.Info
	default:
		return hclog.Debug
	}
}

func (h *handler) Enabled(_ context.Context, l slog.Level) bool {
	return h.to.GetLevel() <= level(l)
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	args := slices.Clone(h.args)
	r.Attrs(func(a slog.Attr) bool {
		args = append(args, a.Key, a.Value.Any())
		return true
	})
	h.to.Log(level(r.Level), r.Message, args...)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &handler{to: h.to, args: slices.Clone(h.args)}
	for _, a := range attrs {
		with.args = append(with.args, a.Key, a.Value.Any())
	}
	return with
}

// WithGroup forgets the group: nothing here has any.
func (h *handler) WithGroup(string) slog.Handler { return h }

package testkit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// LogLines returns a logger that writes to w as gorun does, but without the time: "[WARN]  the message: name=value".
func LogLines(w io.Writer, least slog.Level) *slog.Logger { return slog.New(logLines{w, least}) }

type logLines struct {
	to    io.Writer
	least slog.Level
}

func (h logLines) Enabled(_ context.Context, l slog.Level) bool { return l >= h.least }

func (h logLines) Handle(_ context.Context, r slog.Record) error {
	line := fmt.Sprintf("%-8s%s", "["+r.Level.String()+"]", r.Message)
	colon := ":"
	r.Attrs(func(a slog.Attr) bool {
		value := a.Value.String()
		if strings.ContainsAny(value, " \"") {
			value = fmt.Sprintf("%q", value)
		}
		line += colon + " " + a.Key + "=" + value
		colon = ""
		return true
	})
	_, err := io.WriteString(h.to, line+"\n")
	return err
}

// WithAttrs leaves the attributes out.
func (h logLines) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup leaves the group out.
func (h logLines) WithGroup(string) slog.Handler { return h }

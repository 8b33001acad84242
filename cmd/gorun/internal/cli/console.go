package cli

import (
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/mattn/go-isatty"
)

// newLogger returns gorun's own voice: one line for each message. $LOGLEVEL is torchrun's, with Python's names.
func newLogger(stderr *os.File) (hclog.Logger, error) {
	levels := map[string]hclog.Level{
		"debug": hclog.Debug, "info": hclog.Info, "warn": hclog.Warn, "warning": hclog.Warn,
		"error": hclog.Error, "critical": hclog.Error,
	}
	level := hclog.Warn
	if name := os.Getenv("LOGLEVEL"); name != "" {
		var ok bool
		if level, ok = levels[strings.ToLower(name)]; !ok {
			return nil, usagef("LOGLEVEL=%s: want debug, info, warning or error", quote(name))
		}
	}
	return hclog.New(&hclog.LoggerOptions{Name: "gorun", Level: level, Output: stderr, TimeFormat: "15:04:05.000"}), nil
}

// wantsColor: on a terminal that has not been told otherwise (https://no-color.org).
func wantsColor(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd())
}

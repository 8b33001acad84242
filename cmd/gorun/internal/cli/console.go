package cli

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/launcher"
)

// levels are torchrun's, with Python's names and numbers.
var levels = map[string]hclog.Level{
	"NOTSET": hclog.Trace, "TRACE": hclog.Trace, "DEBUG": hclog.Debug, "INFO": hclog.Info,
	"WARN": hclog.Warn, "WARNING": hclog.Warn, "ERROR": hclog.Error, "CRITICAL": hclog.Error, "FATAL": hclog.Error,
	"0": hclog.Trace, "10": hclog.Debug, "20": hclog.Info, "30": hclog.Warn, "40": hclog.Error, "50": hclog.Error,
}

// newLogger returns gorun's own logger, which writes one line for each message, with the level in color if stderr wants that. host is the
// host's name for the user of gorun launch, or empty.
func newLogger(stderr io.Writer, host string, color bool) (*slog.Logger, error) {
	level := hclog.Info
	if name := os.Getenv("LOGLEVEL"); name != "" {
		var ok bool
		if level, ok = levels[strings.ToUpper(name)]; !ok {
			return nil, usagef("LOGLEVEL=%s: want debug, info, warning or error%s", quote(name),
				didYouMean(name, []string{"debug", "info", "warning", "error"}))
		}
	}
	return slog.New(logHandler{to: hclog.New(&hclog.LoggerOptions{
		Name: strings.TrimSpace("gorun " + host), Level: level, Output: printableWriter{stderr, color}, TimeFormat: "15:04:05.000",
	})}), nil
}

// wantsColor reports whether f is a terminal and NO_COLOR (https://no-color.org) is not set.
func wantsColor(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && isTerminal(f)
}

func isTerminal(f *os.File) bool { return os.Getenv("TERM") != "dumb" && isatty.IsTerminal(f.Fd()) }

// stdins are the values of --stdin.
var stdins = []string{"0", "none"}

func setStdin(o *flags, s string) error {
	who, err := choice(stdins)(s)
	o.noStdin = who == "none"
	return err
}

// input returns the stdin of local rank 0: gorun's own, unless the user wants none, or it is a terminal and gorun is not in its foreground.
func (o *flags) input() *os.File {
	if o.noStdin {
		return nil
	}
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return os.Stdin
	}
	if foreground, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP); err == nil && foreground == unix.Getpgrp() {
		return os.Stdin
	}
	return nil
}

// isUTF8 reports whether the locale uses UTF-8, or names no character set.
func isUTF8(lookup func(string) (string, bool)) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale, _ := lookup(name); locale != "" {
			_, charset, named := strings.Cut(locale, ".")
			charset, _, _ = strings.Cut(charset, "@")
			return !named || strings.EqualFold(strings.ReplaceAll(charset, "-", ""), "utf8")
		}
	}
	return true
}

// The values of --pty.
const (
	ptyAuto = "auto"
	ptyYes  = "yes"
	ptyNo   = "no"
)

var ptys = []string{ptyAuto, ptyYes, ptyNo}

// ptyFor says whether stdout of a local rank is a pseudo terminal. With auto it is one where it would be the terminal itself if there was
// no gorun. Python is unbuffered without it; with it, its debugger would change the modes of the terminal from which it reads.
func (o *flags) ptyFor(onTerminal, python bool) func(localRank int) bool {
	if o.pty != ptyAuto {
		return func(int) bool { return o.pty == ptyYes }
	}
	return func(localRank int) bool {
		isShown := o.show == nil || o.show[localRank]
		inFile := (o.redirects.For(localRank)|o.tee.For(localRank))&launcher.Stdout != 0
		return onTerminal && !python && isShown && !inFile
	}
}

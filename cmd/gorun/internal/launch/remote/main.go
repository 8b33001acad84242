package remote

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/gorun/gorun/cmd/gorun/internal/release"
)

// Command is the command of gorun that is a proxy.
const Command = "agent"

// Main is the main function of a proxy, whose launcher is at the other end of stdin and stdout.
func Main() error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the launcher has gone, which an end of file says too
	signals := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if sig != syscall.SIGHUP || !signal.Ignored(sig) { // nohup makes it ignored
			signal.Notify(signals, sig)
		}
	}
	return Run(os.Stdin, os.Stdout, Config{Hello: newHello(release.Version), Signals: signals, Start: start})
}

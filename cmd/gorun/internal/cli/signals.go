package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/cmd/gorun/internal/job"
	"github.com/gorun/gorun/env/manager"
)

// signalChoices are the signals that users may want to end a job with. Other signals that can be caught are accepted too.
var signalChoices = []string{"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"}

// setSignals reads SIGTERM,SIGINT; the SIG may be left out.
func setSignals(o *flags, s string) error {
	o.stopSignals = nil
	for item := range strings.SplitSeq(s, ",") {
		name := strings.ToUpper(strings.TrimSpace(item))
		if !strings.HasPrefix(name, "SIG") {
			name = "SIG" + name
		}
		sig := unix.SignalNum(name)
		switch sig {
		case 0:
			return fmt.Errorf("no signal %s%s: want names separated by commas, such as SIGTERM,SIGUSR1", quote(item), didYouMean(name, signalChoices))
		case syscall.SIGKILL, syscall.SIGSTOP:
			return fmt.Errorf("no program can handle %s", name)
		case syscall.SIGCHLD:
			return fmt.Errorf("gorun gets %s whenever a worker ends", name)
		default:
			if !slices.Contains(o.stopSignals, os.Signal(sig)) {
				o.stopSignals = append(o.stopSignals, sig)
			}
		}
	}
	return nil
}

// stepSignals returns the signals that end the job, if a resource manager may send them to every process of it.
func (o *flags) stepSignals() (list []syscall.Signal) {
	if !manager.SignalsAll(o.host.lookup) {
		return nil
	}
	for _, s := range job.Unignored(o.stopSignals) {
		list = append(list, s.(syscall.Signal))
	}
	return list
}

// Package systemd tells systemd how a job is, if systemd has started gorun with Type=notify. What it says is in docs/status.md.
package systemd

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/gorun/gorun/agent/status"
)

// notifyVariables are those by which systemd asks a service to tell it about itself (sd_notify(3), sd_watchdog_enabled(3)). Workers do not
// get them.
var notifyVariables = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}

// WithoutVariables returns an environment, a list of NAME=value, without the variables by which systemd asks.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(notifyVariables, name)
	})
}

// A Notifier tells systemd how the job is. nil tells it nothing.
type Notifier struct {
	latest chan *status.Node // has at most the newest snapshot
	ended  chan struct{}
	done   chan struct{}
}

// Notify starts a Notifier, which reports the state of the job to systemd until End. It returns nil if systemd has not asked for reports
// (NOTIFY_SOCKET). An error is logged once.
func Notify(logger *slog.Logger) *Notifier {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("systemd's watchdog is not told that gorun runs", "error", err)
	}
	n := &Notifier{latest: make(chan *status.Node, 1), ended: make(chan struct{}), done: make(chan struct{})}
	go n.run(every/2, func(text string) error { _, err := daemon.SdNotify(false, text); return err }, logger)
	return n
}

// Publish takes a snapshot. It does not wait.
func (n *Notifier) Publish(s *status.Node) {
	if n == nil {
		return
	}
	for {
		select {
		case n.latest <- s:
			return
		default:
		}
		select {
		case <-n.latest: // a newer one takes its place
		default:
		}
	}
}

// notifyLimit is how long the end of the job waits for systemd.
const notifyLimit = 100 * time.Millisecond

// End says that the job ends. It waits for systemd for a tenth of a second at most.
func (n *Notifier) End() {
	if n == nil {
		return
	}
	close(n.ended)
	select {
	case <-n.done:
	case <-time.After(notifyLimit):
	}
}

// run sends what systemd is to know. tick is how often its watchdog is told that gorun runs; 0: never.
func (n *Notifier) run(tick time.Duration, send func(string) error, logger *slog.Logger) {
	defer close(n.done)
	var ticks <-chan time.Time
	if tick > 0 {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	var said notifications
	failed := false
	tell := func(text string) {
		if text == "" {
			return
		}
		if err := send(text); err != nil && !failed {
			failed = true
			logger.Warn("systemd is not told how the job is", "error", err)
		}
	}
	for {
		select {
		case s := <-n.latest:
			tell(said.of(s))
		case <-ticks:
			tell(daemon.SdNotifyWatchdog)
		case <-n.ended:
			tell(said.end())
			return
		}
	}
}

// notifications is what systemd knows.
type notifications struct {
	ready, stopping bool
	status          string
}

// of returns what is new in a snapshot, in the lines of sd_notify(3); empty: nothing.
func (k *notifications) of(n *status.Node) string {
	var lines []string
	if !k.ready && n.Round != nil {
		k.ready = true
		lines = append(lines, daemon.SdNotifyReady)
	}
	interrupted := slices.ContainsFunc(n.Events, func(e status.Event) bool { return e.Kind == status.KindInterrupted })
	if interrupted && !k.stopping {
		k.stopping = true
		lines = append(lines, daemon.SdNotifyStopping)
	}
	if text := statusLine(n); text != k.status {
		k.status = text
		lines = append(lines, "STATUS="+text)
	}
	return strings.Join(lines, "\n")
}

// end returns what is new when the job ends.
func (k *notifications) end() string {
	if k.stopping {
		return ""
	}
	return daemon.SdNotifyStopping
}

// statusLine is what systemctl status shows.
func statusLine(n *status.Node) string {
	if n.Round == nil {
		return fmt.Sprintf("%s: %s", n.State, n.Why)
	}
	run := 0
	for _, w := range n.Workers {
		if w.State == status.WorkerRunning {
			run++
		}
	}
	return fmt.Sprintf("%s: %v, %d of %d workers of this node run, %d of %d restarts used",
		n.State, n.Round, run, len(n.Workers), n.Round.Restarts, n.MaxRestarts)
}

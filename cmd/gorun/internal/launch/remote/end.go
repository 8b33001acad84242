package remote

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// unreadTimeout is how long the launcher may take to read more of the output of a job that has ended: as long as gorun waits for those who
// read its own.
func unreadTimeout(o frame.Outcome) time.Duration {
	switch o.Cause {
	case frame.None:
		return 30 * time.Second
	case frame.Stopped, frame.Drained:
		return time.Second
	case frame.Worker, frame.Elsewhere, frame.Timeout, frame.Died, frame.Other:
	}
	return 5 * time.Second
}

// unread is what a proxy says if the launcher has not read the output of its job.
const unread = "nobody reads the output: the end of it is lost"

func (a *proxy) onEnded(o frame.Outcome) {
	a.outcome = &o
	a.end.Reset(restTimeout)
	a.finish()
}

// finish ends the proxy if the job has ended and all its output has been passed on.
func (a *proxy) finish() {
	if a.outcome != nil && (a.open == 0 || a.lost) {
		a.report()
	}
}

func (a *proxy) report() {
	if !a.lost {
		a.send(frame.Ended, frame.Encode(a.outcome))
	}
	a.done = true
}

// abandon ends the proxy, although its launcher has not read all output of the job, which has ended.
func (a *proxy) abandon() {
	if a.starved() && !a.lost {
		switch o := a.outcome; {
		case o.Code == 0:
			o.Code, o.Cause, o.Text = 1, frame.Other, unread
		case o.Failed():
			o.Text += "gorun: " + unread + "\n"
		default:
			o.Text += "; " + unread
		}
		a.openCredits()
	}
	a.report()
}

// onSignal: somebody on this host ends the job here, or this host goes down.
func (a *proxy) onSignal(sig syscall.Signal) {
	switch {
	case a.process == nil:
		a.err, a.done = fmt.Errorf("signal %d", sig), true
	case a.outcome == nil:
		a.signal(sig)
	}
}

// lose: nobody is at the other end any more. The job ends.
func (a *proxy) lose(err error) {
	if a.lost {
		return
	}
	a.lost, a.err = true, err
	a.silence.Stop()
	if a.process == nil || a.outcome != nil {
		a.done = true
		return
	}
	a.openCredits() // what it writes goes nowhere, but the job must not wait
	switch {
	case a.killed:
		return
	case a.isFrozen():
		a.kill()
		return
	case !a.asked: // else a second signal would kill workers that are ending
		a.signal(syscall.SIGTERM)
	}
	a.end.Reset(a.job.Grace + killMargin)
}

// signal passes a signal to gorun.
func (a *proxy) signal(sig syscall.Signal) {
	if sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGQUIT {
		a.asked = true
	}
	a.process.Signal(sig)
}

func (a *proxy) kill() {
	if a.process == nil {
		a.done = true
		return
	}
	if a.outcome != nil {
		a.abandon()
		return
	}
	if !a.killed {
		a.killed = true
		a.process.Signal(syscall.SIGKILL)
		a.end.Reset(killTimeout)
	}
}

// onEnd: something has not ended in time.
func (a *proxy) onEnd() {
	switch {
	case a.outcome != nil && !a.lost && a.starved() && a.still+restTimeout < unreadTimeout(*a.outcome):
		a.still += restTimeout // the launcher has yet to read
		a.end.Reset(restTimeout)
	case a.outcome != nil:
		a.abandon()
	case a.killed:
		a.err, a.done = errors.Join(a.err, errors.New("the job did not end after SIGKILL")), true
	case a.lost:
		a.kill()
	}
}

// starved reports whether a stream has to wait for the launcher.
func (a *proxy) starved() bool {
	for _, c := range a.credits {
		if c != nil && c.IsUsedUp() {
			return true
		}
	}
	return false
}

// openCredits lets nothing wait for the launcher any more.
func (a *proxy) openCredits() {
	for _, c := range a.credits {
		if c != nil {
			c.Open()
		}
	}
}

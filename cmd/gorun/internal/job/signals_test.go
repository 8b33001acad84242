package job

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/env/manager"
	"github.com/gorun/gorun/env/testing/testkit"
)

// TestInterruptible: who waits for a file system that does not answer hears an interrupt.
func TestInterruptible(t *testing.T) {
	interrupts, answers := make(chan os.Signal, 1), make(chan struct{})
	defer close(answers)
	if n, err := interruptible(interrupts, func() (int, error) { return 7, nil }); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	interrupts <- syscall.SIGTERM
	n, err := interruptible(interrupts, func() (int, error) { <-answers; return 7, nil })
	if stopped, ok := errors.AsType[*agent.InterruptError](err); n != 0 || !ok || stopped.Signal != syscall.SIGTERM {
		t.Errorf("%d, %v", n, err)
	}
}

func TestRepeats(t *testing.T) {
	const term, interrupt, hangup, quit, pipe = syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE
	const ms = time.Millisecond
	type signal struct {
		sig  os.Signal
		at   time.Duration
		same bool
	}
	for name, list := range map[string][]signal{
		"Slurm's time limit":               {{term, 0, false}, {term, 40 * ms, true}},
		"timeout -s INT":                   {{interrupt, 0, false}, {interrupt, ms, true}},
		"a terminal closes, and nohup":     {{hangup, 0, false}, {hangup, 499 * ms, true}},
		"a wrapper passes on ^\\":          {{quit, 0, false}, {quit, 2 * ms, true}},
		"a wrapper makes it a SIGTERM":     {{interrupt, 0, false}, {term, 2 * ms, true}},
		"systemd's SendSIGHUP":             {{term, 0, false}, {hangup, 0, true}},
		"--signals-to-handle":              {{syscall.SIGUSR1, 0, false}, {syscall.SIGUSR1, ms, true}},
		"a person kills":                   {{interrupt, 0, false}, {interrupt, 500 * ms, false}, {interrupt, 900 * ms, true}, {interrupt, 1000 * ms, false}},
		"a person kills with SIGTERM":      {{term, 0, false}, {term, 999 * ms, true}, {term, 1000 * ms, false}},
		"a person kills with ^C":           {{term, 0, false}, {interrupt, 500 * ms, false}},
		"many are not a chain":             {{interrupt, 0, false}, {interrupt, 300 * ms, true}, {interrupt, 600 * ms, false}},
		"^C ends the reader of the output": {{interrupt, 0, false}, {pipe, time.Minute, true}, {interrupt, time.Minute, false}},
		"the reader has gone":              {{pipe, 0, false}, {interrupt, time.Minute, false}},
	} {
		var r repeats
		for i, s := range list {
			if got := r.add(s.sig, time.Unix(100, 0).Add(s.at)); got != s.same {
				t.Errorf("%s: signal %d: repeats: %v", name, i, got)
			}
		}
	}
}

func TestInterruptsArePassedOnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &Interrupts{Caught: make(chan os.Signal, 16), Passed: make(chan os.Signal, 16)}
		quit, asked := make(chan struct{}), 0
		go func() {
			defer close(quit)
			i.pass(new(testkit.Log).Logger(), func() manager.KillLimit {
				asked++
				time.Sleep(3 * time.Second)
				return manager.KillLimit{After: 6 * time.Second, Source: "the manager", Known: true}
			})
		}()
		i.Caught <- syscall.SIGTERM
		time.Sleep(40 * time.Millisecond)
		i.Caught <- syscall.SIGTERM // while the limit is found out, which may take longer than two signals may be apart
		if got := <-i.Passed; got != syscall.SIGTERM {
			t.Error(got)
		}
		if d, note := i.grace(30*time.Second, ""); d != 3*time.Second || !strings.Contains(note, "after 6s: the manager") {
			t.Errorf("%v: %s", d, note)
		}
		time.Sleep(time.Second)
		if len(i.Passed) > 0 {
			t.Errorf("%v is passed on again", <-i.Passed)
		}
		i.Caught <- syscall.SIGINT
		if got := <-i.Passed; got != syscall.SIGINT || asked != 1 {
			t.Errorf("%v, asked %d times", got, asked)
		}
		close(i.Caught)
		<-quit
	})
}

package cli

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/logtest"
)

func TestRepeats(t *testing.T) {
	const term, interrupt = syscall.SIGTERM, syscall.SIGINT
	type signal struct {
		sig  os.Signal
		at   time.Duration
		same bool
	}
	for name, list := range map[string][]signal{
		"a time limit":          {{term, 0, false}, {term, 40 * time.Millisecond, true}},
		"a person kills":        {{term, 0, false}, {term, time.Second, false}, {term, 1999 * time.Millisecond, true}, {term, 2 * time.Second, false}},
		"Ctrl-C twice":          {{interrupt, 0, false}, {interrupt, 10 * time.Millisecond, false}},
		"Ctrl-C after SIGTERM":  {{term, 0, false}, {interrupt, time.Millisecond, false}, {term, 2 * time.Millisecond, true}},
		"SIGTERM after Ctrl-C":  {{interrupt, 0, false}, {term, time.Millisecond, false}},
		"many are not a chain":  {{term, 0, false}, {term, 900 * time.Millisecond, true}, {term, 1800 * time.Millisecond, false}},
		"other signals, always": {{syscall.SIGHUP, 0, false}, {syscall.SIGHUP, 0, false}},
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
		i := &interrupts{caught: make(chan os.Signal, 16), passed: make(chan os.Signal, 16)}
		quit, asked := make(chan struct{}), 0
		go func() {
			defer close(quit)
			i.pass(new(logtest.Log).Logger(), func() killLimit {
				asked++
				time.Sleep(300 * time.Millisecond)
				return killLimit{6 * time.Second, "the manager", true}
			})
		}()
		i.caught <- syscall.SIGTERM
		time.Sleep(40 * time.Millisecond)
		i.caught <- syscall.SIGTERM
		if got := <-i.passed; got != syscall.SIGTERM {
			t.Error(got)
		}
		if d, note := i.grace(defaults(host{})); d != 3*time.Second || !strings.Contains(note, "after 6s: the manager") {
			t.Errorf("%v: %s", d, note)
		}
		time.Sleep(time.Second)
		if len(i.passed) > 0 {
			t.Errorf("%v is passed on again", <-i.passed)
		}
		i.caught <- syscall.SIGINT
		if got := <-i.passed; got != syscall.SIGINT || asked != 1 {
			t.Errorf("%v, asked %d times", got, asked)
		}
		close(i.caught)
		<-quit
	})
}

func TestKillLimit(t *testing.T) {
	const shown = "Configuration data as of 2026-11-23T14:50:29\nKeepAliveTime           = SYSTEM_DEFAULT\nKillOnBadExit           = 0\nKillWait                = 40 sec\nLaunchParameters        = (null)\n"
	slurm := []string{"SLURM_JOB_ID=7"}
	for _, c := range []struct {
		name    string
		environ []string
		config  string
		fails   error
		given   string
		asked   time.Duration
		grace   time.Duration
		note    []string
	}{
		{name: "no manager", asked: 30 * time.Second, grace: 30 * time.Second},
		{name: "Slurm", environ: slurm, config: shown, asked: 30 * time.Second, grace: 35 * time.Second, note: []string{"after 40s: Slurm's KillWait"}},
		{name: "Slurm, quick", environ: slurm, config: strings.ReplaceAll(shown, "40", "4"), grace: 2 * time.Second, note: []string{"after 4s"}},
		{name: "Slurm does not answer", environ: slurm, fails: errors.New("down"), grace: 25 * time.Second, note: []string{"30s", "Slurm's default of KillWait (down)"}},
		{name: "Slurm says something else", environ: slurm, config: "KillWait = soon", grace: 25 * time.Second, note: []string{"Slurm's default", "no KillWait"}},
		{name: "one's own time", environ: slurm, config: shown, given: "--shutdown-timeout=39", asked: 39 * time.Second, grace: 39 * time.Second},
		{name: "one's own time is too long", environ: slurm, config: shown, given: "--shutdown-timeout=40", asked: 40 * time.Second, grace: 40 * time.Second,
			note: []string{"--shutdown-timeout=40 is not below", "40s (Slurm's KillWait)"}},
		{name: "one's own time, and the limit is a guess", environ: slurm, fails: errors.New("down"), given: "--shutdown-timeout=60", asked: time.Minute, grace: time.Minute},
		{name: "Kubernetes", environ: []string{"KUBERNETES_SERVICE_HOST=10.96.0.1"}, asked: 30 * time.Second, grace: 25 * time.Second,
			note: []string{"after 30s: Kubernetes' default", terminationVariable}},
		{name: "a pod that says it", environ: []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", terminationVariable + "=600"}, grace: 595 * time.Second,
			note: []string{"after 10m0s: " + terminationVariable}},
	} {
		lookup := func(name string) (string, bool) {
			for _, v := range slices.Backward(c.environ) {
				if value, ok := strings.CutPrefix(v, name+"="); ok {
					return value, true
				}
			}
			return "", false
		}
		grace, note := killLimitOf(lookup, func() (string, error) { return c.config, c.fails }).grace(c.asked, c.given)
		if grace != c.grace || (note == "") != (c.note == nil) {
			t.Errorf("%s: %v, %q", c.name, grace, note)
		}
		for _, want := range c.note {
			if !strings.Contains(note, want) {
				t.Errorf("%s: %q lacks %q", c.name, note, want)
			}
		}
	}
}

func TestTerminationVariable(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "30": 30 * time.Second, "0": -1, "-1": -1, "1e3": -1, "99999999999": -1, "30s": -1} {
		got, err := termination(func(string) (string, bool) { return text, true })
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

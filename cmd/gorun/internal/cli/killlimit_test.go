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

	"github.com/gorun/gorun/env/testing/testkit"
)

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
		i := &interrupts{caught: make(chan os.Signal, 16), passed: make(chan os.Signal, 16)}
		quit, asked := make(chan struct{}), 0
		go func() {
			defer close(quit)
			i.pass(new(testkit.Log).Logger(), func() killLimit {
				asked++
				time.Sleep(3 * time.Second)
				return killLimit{6 * time.Second, "the manager", true}
			})
		}()
		i.caught <- syscall.SIGTERM
		time.Sleep(40 * time.Millisecond)
		i.caught <- syscall.SIGTERM // while the limit is found out, which may take longer than two signals may be apart
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

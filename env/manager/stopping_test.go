package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKillLimit(t *testing.T) {
	const shown = "Configuration data as of 2026-11-23T14:50:29\nKeepAliveTime           = SYSTEM_DEFAULT\nKillOnBadExit           = 0\nKillWait                = 40 sec\nLaunchParameters        = (null)\n"
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	slurm := []string{"SLURM_JOB_ID=7"}
	for _, c := range []struct {
		name    string
		environ []string
		config  string
		given   string
		asked   time.Duration
		grace   time.Duration
		note    []string
	}{
		{name: "no manager", asked: 30 * time.Second, grace: 30 * time.Second},
		{name: "Slurm", environ: slurm, config: shown, asked: 30 * time.Second, grace: 35 * time.Second, note: []string{"after 40s: Slurm's KillWait"}},
		{name: "Slurm, quick", environ: slurm, config: strings.ReplaceAll(shown, "40 sec", "4 sec"), grace: 2 * time.Second, note: []string{"after 4s"}},
		{name: "Slurm does not answer", environ: slurm, grace: 25 * time.Second, note: []string{"30s", "Slurm's default of KillWait (scontrol show config: exit status 1)"}},
		{name: "Slurm says something else", environ: slurm, config: "KillWait = soon", grace: 25 * time.Second, note: []string{"Slurm's default", "no KillWait"}},
		{name: "one's own time", environ: slurm, config: shown, given: "--shutdown-timeout=39", asked: 39 * time.Second, grace: 39 * time.Second},
		{name: "one's own time is too long", environ: slurm, config: shown, given: "--shutdown-timeout=40", asked: 40 * time.Second, grace: 40 * time.Second,
			note: []string{"--shutdown-timeout=40 is not below", "40s (Slurm's KillWait)"}},
		{name: "one's own time, and the limit is a guess", environ: slurm, given: "--shutdown-timeout=60", asked: time.Minute, grace: time.Minute},
		{name: "Kubernetes", environ: []string{"KUBERNETES_SERVICE_HOST=10.96.0.1"}, asked: 30 * time.Second, grace: 25 * time.Second,
			note: []string{"after 30s: Kubernetes' default", terminationVariable}},
		{name: "a pod that says it", environ: []string{"KUBERNETES_SERVICE_HOST=10.96.0.1", terminationVariable + "=600"}, grace: 595 * time.Second,
			note: []string{"after 10m0s: " + terminationVariable}},
	} {
		script := "#!/bin/sh\nexit 1\n"
		if c.config != "" {
			script = "#!/bin/sh\ncat <<'EOF'\n" + c.config + "\nEOF\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "scontrol"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		lookup := lookupIn(captured(t, "", c.environ...))
		limit, err := FindKillLimit(lookup, true)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		grace, note := limit.Grace(c.asked, c.given)
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

// TestWithoutAsking: a node that starts asks nobody. Only Slurm signals every process of a job.
func TestWithoutAsking(t *testing.T) {
	t.Setenv("PATH", "/nowhere")
	limit, err := FindKillLimit(lookupIn(map[string]string{"SLURM_JOB_ID": "7"}), false)
	if err != nil || limit.Known || !strings.Contains(limit.Source, "not asked yet") {
		t.Errorf("%+v, %v", limit, err)
	}
	for name, want := range map[string]bool{"SLURM_JOB_ID": true, "KUBERNETES_SERVICE_HOST": false, "PMI_RANK": false} {
		if got := SignalsAll(lookupIn(map[string]string{name: "1"})); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTerminationVariable(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "30": 30 * time.Second, "0": -1, "-1": -1, "1e3": -1, "99999999999": -1, "30s": -1} {
		got, err := termination(lookupIn(map[string]string{terminationVariable: text}))
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

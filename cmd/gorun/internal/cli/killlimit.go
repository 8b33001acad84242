package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// terminationVariable names a pod's terminationGracePeriodSeconds. Kubernetes says it in no variable of its own.
const terminationVariable = "GORUN_TERMINATION_GRACE_PERIOD_SECONDS"

// A killLimit is when a manager kills gorun that has got a signal and has not ended. Its zero value is that nobody does.
type killLimit struct {
	after  time.Duration // 0: nobody does, as far as gorun knows
	source string        // who kills, and where that is set
	known  bool          // not a manager's default, which may have been changed
}

// defaultKill is the default of both Slurm's KillWait and a pod's terminationGracePeriodSeconds.
const defaultKill = 30 * time.Second

// killLimitOf finds the limit in the environment, or asks Slurm. The environment has been checked.
func killLimitOf(lookup func(string) (string, bool), showConfig func() (string, error)) killLimit {
	if after, err := termination(lookup); err == nil && after > 0 {
		return killLimit{after, terminationVariable, true}
	}
	if _, ok := lookup("SLURM_JOB_ID"); ok {
		text, err := showConfig()
		if err == nil {
			var wait time.Duration
			if wait, err = killWait(text); err == nil {
				return killLimit{wait, "Slurm's KillWait", true}
			}
		}
		return killLimit{defaultKill, fmt.Sprintf("Slurm's default of KillWait (%v)", err), false}
	}
	if _, ok := lookup("KUBERNETES_SERVICE_HOST"); ok {
		return killLimit{defaultKill, "Kubernetes' default of terminationGracePeriodSeconds; " + terminationVariable + " is not set", false}
	}
	return killLimit{}
}

// termination reads terminationVariable; 0: it is not set.
func termination(lookup func(string) (string, bool)) (time.Duration, error) {
	text, ok := lookup(terminationVariable)
	if !ok || text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil || seconds == 0 {
		return 0, fmt.Errorf("%s=%s: want the pod's terminationGracePeriodSeconds, a number such as 30", terminationVariable, quote(text))
	}
	return time.Duration(seconds) * time.Second, nil
}

// showConfigTimeout bounds how long gorun waits for slurmctld, at a time when it has to be quick.
const showConfigTimeout = 2 * time.Second

// showConfig asks Slurm for its settings. The shell ignores the signals that Slurm may be sending to every process of this job.
func showConfig() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), showConfigTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `trap "" TERM INT HUP QUIT; exec scontrol show config`)
	cmd.WaitDelay = showConfigTimeout / 20
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scontrol show config: %w", err)
	}
	return string(out), nil
}

// notAsked is for killLimitOf before anybody stops the job. Otherwise every node of every job would ask slurmctld when it starts.
func notAsked() (string, error) { return "", errors.New("not asked yet") }

var killWaitLine = regexp.MustCompile(`(?m)^KillWait\s*=\s*(\d{1,5}) sec`)

// killWait reads KillWait from what scontrol shows.
func killWait(config string) (time.Duration, error) {
	found := killWaitLine.FindStringSubmatch(config)
	if found == nil {
		return 0, errors.New("scontrol show config: no KillWait in it")
	}
	seconds, err := strconv.Atoi(found[1])
	return time.Duration(seconds) * time.Second, err
}

// reserve is what gorun needs of the time before it is killed: to kill workers, learn how they ended, and say so.
func (l killLimit) reserve() time.Duration { return min(5*time.Second, l.after/2) }

// grace returns how long workers may take to end, and a note about it, which may be empty. given is how the user gave the time that is
// asked for; empty: it is the default.
func (l killLimit) grace(asked time.Duration, given string) (grace time.Duration, note string) {
	switch {
	case l.after == 0:
		return asked, ""
	case given == "":
		return l.after - l.reserve(), fmt.Sprintf("gorun itself is killed after %v: %s", l.after, l.source)
	case l.known && asked >= l.after:
		return asked, l.tooLate(given)
	}
	return asked, ""
}

// tooLate is the warning about a time, as the user gave it, that is not below the limit.
func (l killLimit) tooLate(given string) string {
	return fmt.Sprintf("%s is not below the time after which gorun itself is killed, %v (%s): then it cannot say how the workers ended", given, l.after, l.source)
}

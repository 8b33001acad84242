package manager

import (
	"fmt"
	"time"
)

// A KillLimit is when a manager kills a process that has got a signal and has not ended. Its zero value is that nobody does.
type KillLimit struct {
	After  time.Duration // 0: nobody does, as far as gorun knows
	Source string        // who kills, and where that is set
	Known  bool          // not a manager's default, which may have been changed
}

// defaultKill is the default of both Slurm's KillWait and a pod's terminationGracePeriodSeconds.
const defaultKill = 30 * time.Second

// FindKillLimit returns the limit of the job around this process. If ask is not set, it only reads variables. Otherwise every node of
// every job would ask slurmctld when it starts. The error names a variable that is wrong.
func FindKillLimit(lookup func(string) (string, bool), ask bool) (KillLimit, error) {
	after, err := termination(lookup)
	if err != nil || after > 0 {
		return KillLimit{after, terminationVariable, true}, err
	}
	for _, m := range managers {
		if m.killLimit != nil && m.isAround(lookup) {
			return m.killLimit(ask), nil
		}
	}
	return KillLimit{}, nil
}

// SignalsAll reports whether the manager around this process may send a signal to every process of the job's node, and not to this one alone.
func SignalsAll(lookup func(string) (string, bool)) bool {
	for _, m := range managers {
		if m.signalsAll && m.isAround(lookup) {
			return true
		}
	}
	return false
}

// isAround reports whether this process belongs to a job of the manager, whether or not as one of its tasks.
func (m *Manager) isAround(lookup func(string) (string, bool)) bool {
	_, ok := lookup(m.around)
	return ok
}

// reserve is what gorun needs of the time before it is killed: to kill workers, learn how they ended, and say so.
func (l KillLimit) reserve() time.Duration { return min(5*time.Second, l.After/2) }

// Grace returns how long workers may take to end, and a note about it, which may be empty. given is how the user gave the time that is
// asked for; empty: it is the default.
func (l KillLimit) Grace(asked time.Duration, given string) (grace time.Duration, note string) {
	switch {
	case l.After == 0:
		return asked, ""
	case given == "":
		return l.After - l.reserve(), fmt.Sprintf("gorun itself is killed after %v: %s", l.After, l.Source)
	default:
		return asked, l.TooLate(asked, given)
	}
}

// TooLate is a warning about a time, as the user gave it, that is not below the limit; empty: it is, or nobody knows.
func (l KillLimit) TooLate(asked time.Duration, given string) string {
	if !l.Known || asked < l.After || given == "" {
		return ""
	}
	return fmt.Sprintf("%s is not below the time after which gorun itself is killed, %v (%s): then it cannot say how the workers ended", given, l.After, l.Source)
}

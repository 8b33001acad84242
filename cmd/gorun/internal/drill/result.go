package drill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Result is the result of a scenario with a policy.
type Result struct {
	Scenario     string    `json:"scenario"`
	Policy       Policy    `json:"on_failure"`
	Held         bool      `json:"held"` // in all runs
	Skipped      bool      `json:"skipped"`
	Why          string    `json:"why"` // it did not hold, or is skipped
	Noticed      *Times    `json:"noticed_ms"`
	NewRound     *Times    `json:"new_round_ms"`
	FirstCorrect *Times    `json:"first_correct_ms"`
	Runs         []Outcome `json:"runs"`
}

// Times sums up a time over the runs that have one.
type Times struct {
	Median float64 `json:"median"`
	Worst  float64 `json:"worst"`
}

// An Outcome is what happened in one run. Its times start at the fault.
type Outcome struct {
	Fault        string    `json:"fault"`
	Noticed      *float64  `json:"noticed_ms"`       // until a worker that the fault did not hit reacted; nil: none did
	NewRound     *float64  `json:"new_round_ms"`     // until the first worker was in a new round; nil: there was none
	FirstCorrect *float64  `json:"first_correct_ms"` // until all workers had computed together again; nil: they never stopped, or never did
	Held         bool      `json:"held"`
	Why          string    `json:"why"` // it did not hold
	Leftovers    Leftovers `json:"left_over"`
	Logs         string    `json:"logs"` // directory; empty: they are not kept
	Timeline     Timeline  `json:"timeline"`
}

// add adds an outcome.
func (r *Result) add(o Outcome) {
	r.Runs = append(r.Runs, o)
	r.Held = !slices.ContainsFunc(r.Runs, func(o Outcome) bool { return !o.Held })
	r.Noticed = timesOf(r.Runs, func(o Outcome) *float64 { return o.Noticed })
	r.NewRound = timesOf(r.Runs, func(o Outcome) *float64 { return o.NewRound })
	r.FirstCorrect = timesOf(r.Runs, func(o Outcome) *float64 { return o.FirstCorrect })
	if r.Why == "" {
		r.Why = o.Why
	}
}

func timesOf(runs []Outcome, of func(Outcome) *float64) *Times {
	var list []float64
	for _, o := range runs {
		if ms := of(o); ms != nil {
			list = append(list, *ms)
		}
	}
	if list == nil {
		return nil
	}
	slices.Sort(list)
	return &Times{Median: list[(len(list)-1)/2], Worst: list[len(list)-1]}
}

// Leftovers is what a scenario left behind. Whatever could be removed has been removed.
type Leftovers struct {
	Processes int `json:"processes"`
	Ports     int `json:"ports"`
	Files     int `json:"files"`
}

func (l Leftovers) String() string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{{l.Processes, "process", "processes"}, {l.Ports, "port", "ports"}, {l.Files, "file", "files"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.many))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// outcome is what has happened so far.
func (d *drill) outcome() Outcome {
	f, origin := &d.fault, d.fault.at
	if !f.happened() {
		origin = d.begun
	}
	since := func(t time.Time) *float64 {
		if t.IsZero() || !f.happened() {
			return nil
		}
		return new(milliseconds(t.Sub(origin)))
	}
	return Outcome{
		Fault: f.what, Noticed: since(f.noticed), NewRound: since(f.newRound), FirstCorrect: since(f.recovered),
		Timeline: d.timeline.since(origin, cmp.Or(d.finished, time.Now())),
	}
}

// milliseconds returns a duration to a tenth of a millisecond.
func milliseconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }

// A mark is a time with a name.
type mark struct {
	name string
	at   float64
}

// marks are the times of a run, without those that it does not have.
func (r *Outcome) marks() (list []mark) {
	for _, m := range []struct {
		name string
		at   *float64
	}{{"noticed", r.Noticed}, {"new round", r.NewRound}, {"first correct operation", r.FirstCorrect}} {
		if m.at != nil {
			list = append(list, mark{m.name, *m.at})
		}
	}
	return list
}

func (r *Outcome) judge(err error) {
	if err == nil && r.Leftovers != (Leftovers{}) {
		err = fmt.Errorf("left over: %v", r.Leftovers)
	}
	r.Held = err == nil
	if err != nil {
		r.Why = err.Error()
	}
}

// times lists the marks for people.
func (r *Outcome) times() (text string) {
	for _, m := range r.marks() {
		text += fmt.Sprintf(", %s after %.0f ms", m.name, m.at)
	}
	return text
}

// report logs the result, and, if the scenario did not hold, the end of each log.
func (r *Outcome) report(o Options, name string) {
	if r.Held {
		o.log("%s: held%s", name, r.times())
	} else {
		o.log("%s: NOT held: %s; left over: %v", name, r.Why, r.Leftovers)
		logs, _ := filepath.Glob(filepath.Join(r.Logs, "*.log")) // the pattern is good
		for _, log := range logs {
			o.log("%s", tail(log))
		}
	}
	if r.Logs != "" {
		o.log("%s: logs are in %s", name, r.Logs)
	}
}

// tailLines is how many lines of a log are shown.
const tailLines = 8

// tail returns the end of a log, for people.
func tail(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Sprintf("  %s:\n    %s", filepath.Base(name), bytes.Join(lines, []byte("\n    ")))
}

// keepLogs removes the directory, or all but the logs.
func (r *Outcome) keepLogs(dir string) error {
	if r.Logs == "" {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".log" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

package drill

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// A Result is the result of one scenario. Its times start at the fault.
type Result struct {
	Scenario  string    `json:"scenario"`
	Fault     string    `json:"fault"`
	Noticed   *float64  `json:"noticed_ms"` // until anybody else did something about it; nil: nobody
	Running   *float64  `json:"running_ms"` // until all workers computed together again; nil: they did all the time, or never
	Held      bool      `json:"held"`
	Skipped   bool      `json:"skipped"`
	Why       string    `json:"why"` // it did not hold, or is skipped
	Leftovers Leftovers `json:"leftovers"`
	Logs      string    `json:"logs"` // directory; empty: they are not kept
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
		n    int
		what string
	}{{l.Processes, "processes"}, {l.Ports, "ports"}, {l.Files, "files"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func (r *Result) measure(s *testbed) {
	since := func(t time.Time) *float64 {
		if t.IsZero() || s.world.fault.IsZero() {
			return nil
		}
		return new(math.Round(t.Sub(s.world.fault).Seconds()*1e4) / 10)
	}
	r.Fault, r.Noticed, r.Running = s.fault, since(s.world.noticed), since(s.recovered)
}

func (r *Result) judge(err error) {
	if err == nil && r.Leftovers != (Leftovers{}) {
		err = errors.New("something was left over")
	}
	r.Held = err == nil
	if err != nil {
		r.Why = err.Error()
	}
}

// report logs the result, and, if the scenario did not hold, the end of each log.
func (r *Result) report(o Options) {
	if r.Held {
		o.log("%s: held", r.Scenario)
	} else {
		o.log("%s: NOT held: %s; leftovers: %v", r.Scenario, r.Why, r.Leftovers)
		logs, _ := filepath.Glob(filepath.Join(r.Logs, "*.log")) // the pattern is good
		for _, name := range logs {
			o.log("%s", tail(name))
		}
	}
	if r.Logs != "" {
		o.log("%s: logs are in %s", r.Scenario, r.Logs)
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
func (r *Result) keepLogs(dir string) error {
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

// Table writes results for people.
func Table(out io.Writer, results []Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SCENARIO\tFAULT\tNOTICED\tRUNNING AGAIN\tHELD\tLEFTOVERS") // the error comes with the flush
	for _, r := range results {
		held, left := "yes", r.Leftovers.String()
		switch {
		case r.Skipped:
			held, left = "skipped: "+r.Why, "-"
		case !r.Held:
			held = "NO: " + r.Why
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Scenario, cmp.Or(r.Fault, "-"), millis(r.Noticed), millis(r.Running), held, left)
	}
	return t.Flush()
}

func millis(ms *float64) string {
	if ms == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", *ms)
}

package drill

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table writes results for people: a line for each, and below them what did not hold, or was skipped, and why.
func Table(out io.Writer, results []Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SCENARIO\tON FAILURE\tFAULT\tNOTICED\tNEW ROUND\tFIRST CORRECT\tHELD\tLEFT OVER") // the error comes with the flush
	var notes []string
	for _, r := range results {
		fault, held, left := "-", "yes", "-"
		for _, o := range r.Runs {
			fault = cmp.Or(o.Fault, fault)
			if l := o.Leftovers.String(); left == "-" || left == "none" {
				left = l
			}
		}
		switch {
		case r.Skipped:
			held = "skipped"
		case !r.Held:
			held = "NO"
		}
		if r.Why != "" {
			notes = append(notes, fmt.Sprintf("%s, %s: %s%s: %s\n", r.Scenario, r.Policy, held, r.often(), oneLine(r.Why)))
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%v\t%v\t%s\t%s\n", r.Scenario, r.Policy, fault, r.Noticed, r.NewRound, r.FirstCorrect, held, left)
	}
	if err := t.Flush(); err != nil || notes == nil {
		return err
	}
	_, err := io.WriteString(out, "\n"+strings.Join(notes, ""))
	return err
}

// String is "5 ms", or "5 (9) ms" if the worst time was another.
func (t *Times) String() string {
	if t == nil {
		return "-"
	}
	median, worst := fmt.Sprintf("%.0f", t.Median), fmt.Sprintf("%.0f", t.Worst)
	if worst != median {
		median += " (" + worst + ")"
	}
	return median + " ms"
}

// often says in how many of several runs a scenario did not hold.
func (r *Result) often() string {
	failed := 0
	for _, o := range r.Runs {
		if !o.Held {
			failed++
		}
	}
	if len(r.Runs) < 2 || failed == 0 {
		return ""
	}
	return fmt.Sprintf(" in %d of %d runs, at first", failed, len(r.Runs))
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }

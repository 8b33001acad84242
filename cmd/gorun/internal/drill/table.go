package drill

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// Table writes results for people.
func Table(out io.Writer, results []Result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "SCENARIO\tON FAILURE\tFAULT\tNOTICED\tNEW ROUND\tFIRST CORRECT\tHELD\tLEFT OVER") // the error comes with the flush
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
			held = "skipped: " + r.Why
		case !r.Held:
			held = "NO: " + r.Why
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%v\t%v\t%s\t%s\n", r.Scenario, r.Policy, fault, r.Noticed, r.NewRound, r.FirstCorrect, held, left)
	}
	return t.Flush()
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

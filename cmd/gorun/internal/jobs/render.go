package jobs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gorun/gorun/agent"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/env/progress"
)

// shownEvents is how many events a status shows.
const shownEvents = 10

// List shows agents in a table, one in each line.
func List(nodes []status.Node, now time.Time) string {
	var b strings.Builder
	t := newTable(&b, "JOB", "HOST", "PID", "NODE", "RANKS", "STATE", "FOR", "RESTARTS", "PROGRAM")
	for _, j := range status.Jobs(nodes) {
		for _, n := range j.Nodes {
			if n.Problem != "" {
				t.row(cmp.Or(n.Job, "-"), n.Host, pidOf(n), "-", "-", "no answer", "", "", n.Problem)
				continue
			}
			t.row(n.Job, n.Host, strconv.Itoa(n.Pid), nodeOf(n), ranksOf(n), string(n.State), ago(now, n.Since), restartsOf(n), n.Program)
		}
	}
	t.end()
	return b.String()
}

// nodeOf is "0 of 2".
func nodeOf(n status.Node) string {
	if n.Round == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d", n.Round.NodeRank, n.Round.Nodes)
}

// ranksOf is "0-3 of 8".
func ranksOf(n status.Node) string {
	if n.Round == nil {
		return "-"
	}
	first, last := n.Round.FirstRank, n.Round.FirstRank+len(n.Workers)-1
	text := strconv.Itoa(first)
	if last > first {
		text += "-" + strconv.Itoa(last)
	}
	return fmt.Sprintf("%s of %d", text, n.Round.WorldSize)
}

func restartsOf(n status.Node) string {
	used := 0
	if n.Round != nil {
		used = n.Round.Restarts
	}
	return fmt.Sprintf("%d of %d", used, n.MaxRestarts)
}

// Show shows a job: its nodes, its ranks and its last events.
func Show(j *status.Job, now time.Time) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(agent.Printable(fmt.Sprintf(format, args...)) + "\n") }
	newest := j.Newest()
	if newest == nil {
		line("job %s: no node answers", j.ID)
	} else {
		line("job %s: %s, %s", j.ID, newest.Program, roundText(newest))
	}
	if j.Endpoint != "" {
		line("its nodes meet at %s", j.Endpoint)
	}
	for _, n := range j.Nodes {
		if n.Waiting != nil {
			line("%s waits for %s: %s", n.Host, ago(now, n.Waiting.Since), n.Waiting.For)
		}
	}
	if f, at := j.Failure(); f != nil {
		line("last failure %s ago, in round %d on %s: %s", ago(now, f.At), f.Round, at.Host, f.Text)
	}
	if newest != nil && newest.Logs != "" {
		line("log files of %s: %s", newest.Host, newest.Logs)
	}
	b.WriteString("\n")
	showNodes(&b, j, now)
	showRanks(&b, j, now)
	showEvents(&b, j)
	return b.String()
}

func roundText(n *status.Node) string {
	if n.Round == nil {
		return "no round yet"
	}
	return fmt.Sprintf("%v, %s restarts used", n.Round, restartsOf(*n))
}

func showNodes(b *strings.Builder, j *status.Job, now time.Time) {
	t := newTable(b, "NODE", "HOST", "PID", "STATE", "FOR", "WHY")
	for _, n := range j.Nodes {
		if n.Problem != "" {
			t.row(rankOf(n), n.Host, pidOf(n), "no answer", "", n.Problem)
			continue
		}
		t.row(rankOf(n), n.Host, pidOf(n), string(n.State), ago(now, n.Since), n.Why)
	}
	t.end()
}

func pidOf(n status.Node) string {
	if n.Pid == 0 {
		return "-"
	}
	return strconv.Itoa(n.Pid)
}

func rankOf(n status.Node) string {
	if n.Round == nil {
		return "-"
	}
	return strconv.Itoa(n.Round.NodeRank)
}

func showRanks(b *strings.Builder, j *status.Job, now time.Time) {
	var t *table
	inCollectives := slices.ContainsFunc(j.Nodes, func(n status.Node) bool {
		return slices.ContainsFunc(n.Workers, func(w status.Worker) bool { return w.Collectives != nil })
	})
	for _, n := range j.Nodes {
		for _, w := range n.Workers {
			if t == nil {
				b.WriteString("\n")
				columns := []string{"RANK", "NODE", "LOCAL", "PID", "STATE", "FOR", "RESTARTS"}
				if inCollectives {
					columns = append(columns, "COLLECTIVES", "SENT")
				}
				t = newTable(b, append(columns, "DOING")...)
			}
			state, since, doing := string(w.State), w.Started, w.Doing
			if w.Exit != nil {
				since, doing = w.Exit.At, w.Exit.Text
			}
			cells := []string{strconv.Itoa(w.Rank), rankOf(n), strconv.Itoa(w.LocalRank), strconv.Itoa(w.Pid), state, ago(now, since), strconv.Itoa(w.Restarts)}
			if inCollectives {
				cells = append(cells, rates(w.Collectives)...)
			}
			t.row(append(cells, doing)...)
		}
	}
	if t != nil {
		t.end()
	}
}

func showEvents(b *strings.Builder, j *status.Job) {
	events := j.Events(shownEvents)
	if len(events) == 0 {
		return
	}
	b.WriteString("\n")
	t := newTable(b, "TIME", "HOST", "EVENT")
	for _, e := range events {
		t.row(e.At.Local().Format(time.TimeOnly), e.Node.Host, e.Text)
	}
	t.end()
}

// rates returns two cells: how many collectives a worker takes part in per second, and how much it sends in them.
func rates(c *progress.Collectives) []string {
	if c == nil {
		return []string{"", ""}
	}
	return []string{number(c.PerSecond, 0) + "/s", number(c.SentPerSecond/1e6, 1) + " MB/s"}
}

// number formats x with so many decimals, or with an exponent from 1e12 on, so that a wrong number from a worker cannot widen the table.
func number(x float64, decimals int) string {
	if x >= 1e12 {
		return strconv.FormatFloat(x, 'e', decimals, 64)
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// ago is how long something has lasted, in whole seconds.
func ago(now, since time.Time) string {
	return max(now.Sub(since), 0).Truncate(time.Second).String()
}

// A table has columns, which are as wide as they must be.
type table struct{ to *tabwriter.Writer }

func newTable(to io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(agent.Printable(c), "\t", " ")
	}
	_, _ = fmt.Fprintln(t.to, strings.TrimRight(strings.Join(cells, "\t"), "\t")) // to memory: cannot fail
}

func (t *table) end() { _ = t.to.Flush() }

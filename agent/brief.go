package agent

import (
	"fmt"
	"strings"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// summaryHost returns which node of the job prints the whole summary; empty: this one. It is the node of the root cause, or, if that one is lost,
// the first node that is left. round is the last one with workers of this node, and over is how it ended; they are nil if there was none, or
// if the job ended after it. A node that knows of no failure elsewhere speaks for itself.
func (e *WorkerError) summaryHost(round *rendezvous.Round, over *rendezvous.ClosedError) string {
	switch {
	case e.Elsewhere == nil || round != nil && e.Elsewhere.Node == round.Node.ID:
		return ""
	case over == nil || !over.Outcome.Lost:
		return e.Elsewhere.Host
	case round.Self == 0 || round.Self == 1 && e.Elsewhere.Rank < round.Place.FirstRank:
		return ""
	default:
		return "another node"
	}
}

// Brief is what this node has to say if another one prints the summary, in one line: the root cause with the last line of its text, and
// what the summary of that node does not have.
func (e *WorkerError) Brief() string {
	parts := []string{e.Error()}
	if e.Elsewhere != nil {
		parts[0] += saying(lastLines(e.Elsewhere.Text, 1), e.Root, e.Root.String())
	}
	if n := len(e.Others); n > 0 {
		first := e.Others[0]
		parts = append(parts, fmt.Sprintf("%s of this node failed as well, first %s%s", plural(n, "worker", "workers"), describe(first),
			saying(e.explanation(first, 1), first, first.String())))
		if file, left := e.ErrorFiles[first.Rank]; left {
			parts = append(parts, "error file: "+file.File)
		}
	}
	for _, note := range []string{e.flightNote(), e.exitedNote()} {
		if note != "" {
			parts = append(parts, strings.TrimSuffix(note, "."))
		}
	}
	return strings.Join(append(parts, "see the summary of "+e.SummaryHost), "; ")
}

// saying is the last line of what a worker said, for behind how it ended, unless it says no more than that.
func saying(lines []string, x death.Death, its string) string {
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" || last == ending(x) || strings.Contains(last, its) {
		return ""
	}
	return ": " + last
}

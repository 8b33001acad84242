package agent

import (
	"fmt"
	"strings"
)

const (
	maxListed  = 8   // groups of failures that the summary lists, that of the root cause among them
	rootLines  = 100 // last lines of the root cause's call stack
	otherLines = 5   // last lines of what another failure has to say
	ruler      = 60
)

// Summary describes the failure in one block, in torchrun's form: the root cause comes last, where a terminal shows it. It escapes
// control characters of the workers. It ends with a line break.
//
//	============================================================
//	train.py FAILED
//	------------------------------------------------------------
//	Failures:
//	[1]:
//	  time      : 2026-01-02_15:04:05.912
//	  host      : node-a
//	  rank      : 3 (local_rank: 3)
//	  exitcode  : -15 (SIGTERM) (pid: 4244)
//	  error_file: <N/A>
//	  same for  : 2 other workers: ranks 0,2
//	  traceback : Signal 15 (SIGTERM) received by PID 4244: stopped by gorun after rank 1 failed
//	2 restarts were allowed, and all were used.
//	------------------------------------------------------------
//	Root Cause (first observed failure):
//	[0]:
//	  time      : 2026-01-02_15:04:05.678
//	  host      : node-a
//	  rank      : 1 (local_rank: 1)
//	  exitcode  : 1 (pid: 4242)
//	  error_file: /logs/job_x/attempt_0/1/error.json
//	  traceback : Traceback (most recent call last):
//	      File "train.py", line 7, in main
//	    RuntimeError: boom
//	============================================================
func (e *WorkerError) Summary() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(Printable(fmt.Sprintf(format, args...)) + "\n") }

	line("%s", strings.Repeat("=", ruler))
	line("%s FAILED", e.Program)
	line("%s", strings.Repeat("-", ruler))
	root, others := e.grouped()
	e.writeOthers(line, others)
	if len(e.Where) > 0 {
		line("Where the ranks of this node were, before any was stopped:")
	}
	for _, at := range e.Where {
		line("  %s", at)
	}
	for _, note := range []string{e.flightNote(), e.exitedNote(), e.restartNote()} {
		if note != "" {
			line("%s", note)
		}
	}
	line("%s", strings.Repeat("-", ruler))
	if len(e.Tied) > 1 {
		line("Root Cause (not known; it is one of %s, which hang):", cut(ranksOf(e.Tied)))
	} else {
		line("Root Cause (first observed failure):")
	}
	e.writeFailure(line, 0, root, rootLines)
	line("%s", strings.Repeat("=", ruler))
	return b.String()
}

// writeOthers writes the failures that are not the root cause.
func (e *WorkerError) writeOthers(line func(string, ...any), others []group) {
	line("Failures:")
	if len(others) == 0 {
		line("  <NO_OTHER_FAILURES>")
	}
	listed := others[:min(len(others), maxListed-1)]
	for i, g := range listed {
		e.writeFailure(line, 1+i, g, otherLines)
	}
	own, stopped := 0, 0
	for _, g := range others[len(listed):] {
		if g.Stopped {
			stopped += 1 + len(g.same)
		} else {
			own += 1 + len(g.same)
		}
	}
	if rest := restNote(own, stopped); rest != "" {
		line("%s", rest)
	}
}

// writeFailure writes one failure, with the last lines of each text.
func (e *WorkerError) writeFailure(line func(string, ...any), index int, x group, lines int) {
	r, left := e.ErrorFiles[x.Rank]
	host, note := e.Host, e.note(x.Death, r)
	if e.Elsewhere != nil && x.Rank == e.Root.Rank {
		host, note = e.Elsewhere.Host, "" // its text has one
		x.At = x.At.Local()
	}
	at, file := x.At.Format("2006-01-02_15:04:05.000"), "<N/A>"
	if x.At.IsZero() {
		at = "<N/A>"
	} else if !r.At.IsZero() && x.At.Sub(r.At).Seconds() >= 2 { // r.At is cut to the second
		at += " (its error is from " + r.At.In(x.At.Location()).Format("15:04:05") + ")"
	}
	if left {
		file = r.File
	}
	line("[%d]:", index)
	line("  time      : %s", at)
	line("  host      : %s", host)
	line("  rank      : %d (local_rank: %d)", x.Rank, x.LocalRank)
	line("  exitcode  : %s (pid: %d)", exitText(x.Death), x.Pid)
	line("  error_file: %s", file)
	if note != "" {
		line("  note      : %s", note)
	}
	if len(x.same) > 0 {
		line("  same for  : %s: %s", plural(len(x.same), "other worker", "other workers"), cut(ranksOf(x.same)))
	}
	for i, text := range e.explanation(x.Death, lines) {
		lead := "    "
		if i == 0 {
			lead = "  traceback : "
		}
		line("%s", strings.TrimRight(lead+text, " "))
	}
}

// restNote counts the failures that the summary does not list.
func restNote(own, stopped int) string {
	switch {
	case own > 0 && stopped > 0:
		return fmt.Sprintf("And %d that failed on their own, %d that gorun stopped.", own, stopped)
	case own > 0:
		return fmt.Sprintf("And %d that failed on their own.", own)
	case stopped > 0:
		return fmt.Sprintf("And %d that gorun stopped.", stopped)
	}
	return ""
}

// flightNote says where to find what comm's ranks did last.
func (e *WorkerError) flightNote() string {
	if e.Flights == "" {
		return ""
	}
	return "What each rank did last (the flight recorder): " + e.Flights
}

// exitedNote names the workers that had exited 0 before: the others may have failed because these were gone.
func (e *WorkerError) exitedNote() string {
	if len(e.Exited) == 0 {
		return ""
	}
	var names []string
	for _, x := range e.Exited[:min(len(e.Exited), maxListed)] {
		names = append(names, fmt.Sprintf("rank %d (pid %d) at %s", x.Rank, x.Pid, x.At.Format("15:04:05.000")))
	}
	if more := len(e.Exited) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "Before that, with exit code 0: " + strings.Join(names, ", ") + "."
}

// restartNote explains why there is no other attempt.
func (e *WorkerError) restartNote() string {
	switch {
	case e.MaxRestarts == 0:
		return ""
	case asksForNoRestart(e.Root):
		return fmt.Sprintf("Exit code %d asks for no restart; %d of %d restarts were used.", NoRestart, e.Restarts, e.MaxRestarts)
	case e.noRestart():
		return fmt.Sprintf("The program says that another attempt would fail too; %d of %d restarts were used.", e.Restarts, e.MaxRestarts)
	case e.Restarts == e.MaxRestarts:
		return fmt.Sprintf("%s used.", plural(e.Restarts, "restart was allowed, and it was", "restarts were allowed, and all were"))
	default:
		return fmt.Sprintf("%d of %d restarts were used.", e.Restarts, e.MaxRestarts)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

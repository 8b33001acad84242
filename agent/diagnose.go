package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/launcher/topology"
)

// A diagnosis is what the workers of this node were doing when one of the job hung.
type diagnosis struct {
	doing []string // by local rank, as the end of a sentence; empty: not known
	stack []string // by local rank, if it is known: the functions in which it was
	hint  string   // how to see more; empty: no way is known, or everything is known
	files string   // a pattern of the files that say more; empty: there are none
}

const (
	// spreadDelay is how long a node waits before it kills a worker that hangs, so that the other nodes learn of the hang first.
	spreadDelay = time.Second
	// quitTimeout is how long a node waits for the end of a program that prints its stacks. The launcher kills it after one second.
	quitTimeout = 2 * time.Second
)

// deathOf says how a worker that hangs will end.
func (l *loop) deathOf(h hang.Hang) death.Death {
	return death.Death{
		Rank: h.Rank, LocalRank: h.LocalRank, Host: l.Node.Host, Pid: h.Pid, ExitCode: -int(syscall.SIGKILL), At: time.Now(),
		Cause: death.Hang, Why: h.String(),
	}
}

// diagnose finds out, in a separate goroutine, what the workers are doing. hung is the one that hangs, if it is of this node.
func (l *loop) diagnose(hung *death.Death) {
	found := make(chan diagnosis, 1)
	l.found, l.diagnosis = found, diagnosis{}
	gang, workers, several, begun := l.gang, slices.Clone(l.watched), l.round.Size > 1, time.Now()
	for i, w := range workers {
		if l.machine.indexOf(w.Rank) >= 0 && (hung == nil || hung.Rank != w.Rank) {
			workers[i].Pid = 0 // another process may have it by now
		}
	}
	if l.monitor == nil { // this node watches nobody
		found <- diagnosis{}
		return
	}
	dir := attemptDir(l.Config, l.round.Restarts)
	l.stacks[dir] = true
	l.calls.Go(func() {
		report, err := hang.Collect(l.startCtx, workers, dir)
		if err != nil {
			l.Logger.Warn("cannot write what the workers were doing", "error", err)
		}
		d := diagnosis{doing: report.Doing, stack: report.Stack, hint: report.FirstHint()}
		if dir != "" {
			d.files = filepath.Join(dir, "*", hang.StacksFile)
		}
		if hung != nil && several {
			select {
			case <-time.After(spreadDelay - time.Since(begun)):
			case <-l.startCtx.Done():
			}
		}
		if hung != nil && report.Dumps[hung.LocalRank] {
			d.hint = "" // its stacks are those that matter
			gang.Fail(hung.LocalRank, hung.Why, syscall.SIGABRT)
			hang.AwaitEnd(l.startCtx, hung.Pid, quitTimeout)
		}
		found <- d
	})
}

// announceHang logs who hung, on this node.
func (l *loop) announceHang(a announce) {
	l.logWhere()
	text := fmt.Sprintf("rank %d (local rank %d, pid %d) hangs: %s", a.Rank, a.LocalRank, a.Pid, a.Why)
	if a.LocalRank < len(l.doing) && l.doing[a.LocalRank] != "" {
		text += "; " + Printable(l.doing[a.LocalRank])
	}
	switch {
	case len(l.tied) > 1:
		text = fmt.Sprintf("%s hang, and where they are does not tell which of them holds up the others. ", cut(ranksOf(l.tied)))
		if l.machine.survivors {
			text += fmt.Sprintf("Rank %d is killed; the others live on, if they take part", a.Rank)
		} else {
			text += "They are stopped"
		}
	case a.others > 0 && l.machine.survivors:
		text += ". It is killed; the others live on, if they take part"
	case a.others > 0:
		text += ". It is killed, and the others are stopped"
	default:
		text += ". It is killed"
	}
	l.Logger.Error(text, l.stacksAttr()...)
}

// logDiagnosis logs the names of the files that say what the workers of this node were doing when a worker of another node hung.
func (l *loop) logDiagnosis() {
	if l.files != "" {
		l.logWhere()
		l.Logger.Info("a worker of another node hangs", l.stacksAttr()...)
	}
}

// logWhere logs where all ranks of this node were, if there are several.
func (l *loop) logWhere() {
	if lines := l.where(); len(lines) > 0 && len(l.doing) > 1 {
		l.Logger.Warn("where the ranks of this node are: " + strings.Join(lines, "; "))
	}
}

// where says where the ranks of this node were, when one of the job hung: a line for each place.
func (l *loop) where() (lines []string) {
	ranks := make(map[string][]int)
	var places []string
	for local, doing := range l.doing {
		at := strings.TrimPrefix(doing, "it was ")
		if l.stack[local] != "" {
			at = "in " + l.stack[local]
		}
		if at == "" { // it had ended
			continue
		}
		if ranks[at] == nil {
			places = append(places, at)
		}
		ranks[at] = append(ranks[at], l.round.Place.FirstRank+local)
	}
	for _, at := range places {
		lines = append(lines, cut(Printable(ranksOf(ranks[at])+" "+at)))
	}
	if l.hint != "" && lines != nil {
		lines = append(lines, l.hint)
	}
	return lines
}

// ranksOf is "rank 3", or "ranks 0-2,5".
func ranksOf(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + topology.FormatList(ranks)
}

func ranksHave(ranks []int) string {
	if len(ranks) == 1 {
		return ranksOf(ranks) + " has"
	}
	return ranksOf(ranks) + " have"
}

func (l *loop) stacksAttr() []any {
	if l.files == "" {
		return nil
	}
	return []any{"stacks", l.files}
}

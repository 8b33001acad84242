package agent

import (
	"fmt"
	"time"

	"github.com/gorun/gorun/agent/hang"
)

// stragglerPeriod is how often a worker that is slower than the others is named.
const stragglerPeriod = time.Minute

// prepareProgress creates the files by which n workers report progress. If nobody looks at them, it creates only their directory, in which
// workers also answer questions.
func (l *loop) prepareProgress(n int) []time.Time {
	switch {
	case l.ProgressDir == "":
		return nil
	case l.HangTimeout == 0:
		n = 0
	}
	stamps, err := hang.Prepare(l.ProgressDir, n)
	if err != nil {
		l.Logger.Warn("cannot create the files by which workers report progress", "error", err)
	}
	return stamps
}

// watchProgress begins to watch the workers of a new gang, if they may be killed for a hang. stamps are the times of their files before it was
// started. Survivors may have touched them since then, in their last round.
func (l *loop) watchProgress(stamps []time.Time) {
	before := l.watched
	l.watchNobody()
	if l.ProgressDir == "" {
		return
	}
	for local, pid := range l.gang.Pids() {
		w := hang.Worker{Rank: l.round.Place.FirstRank + local, LocalRank: local, Pid: pid, File: hang.File(l.ProgressDir, local)}
		if local < len(stamps) {
			w.Since = stamps[local]
		}
		if local < len(before) && before[local].Pid == pid {
			w.Since = time.Time{}
		}
		l.watched = append(l.watched, w)
	}
	if l.HangTimeout == 0 {
		return
	}
	l.monitor = hang.Watch(l.HangTimeout, l.watched, l.round.Size > 1, l.gang.IsBlocked, l.sayUnwatched)
	l.hangs = l.monitor.Hangs()
	go l.monitor.WatchPace(stragglerPeriod, func(text string) { l.Logger.Warn(text) })
}

// sayUnwatched says once in a job that a hang of these ranks would go unnoticed.
func (l *loop) sayUnwatched(ranks []int) {
	l.warned.Do(func() {
		l.Logger.Warn(fmt.Sprintf("%s no progress within %v, and --hang-timeout watches a worker only from its first report: a program that does not use package comm "+
			"has to touch the file $GORUN_PROGRESS_FILE after each step (docs/hang.md)", cut(ranksHave(ranks)+" reported"), l.HangTimeout))
	})
}

// watchNobody ends the watch over the last gang, if there is one.
func (l *loop) watchNobody() {
	if l.monitor != nil {
		l.monitor.Close()
	}
	l.monitor, l.hangs, l.watched = nil, nil, nil
}

// pauseProgress stops the clocks of the workers that are watched, or, if on is false, lets them go on.
func (l *loop) pauseProgress(on bool) {
	if l.monitor != nil {
		l.monitor.Pause(on)
	}
}

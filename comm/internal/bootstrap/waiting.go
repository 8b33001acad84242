package bootstrap

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/gorun/gorun/comm/store"
)

const (
	// firstWord is after how long Init says for whom it waits. The ranks of a node leave that to the first of them, as far as it
	// has come; secondWord is for the others, if it has not.
	firstWord  = time.Second
	secondWord = 10 * time.Second
	// longestSilence is for how long Init then says no more.
	longestSilence = time.Minute
)

// A waiting tells a logger for whom Init waits.
type waiting struct {
	log  *slog.Logger
	stop context.CancelFunc
	over sync.WaitGroup

	mu     sync.Mutex
	reason func(ctx context.Context) string // in words; nil or empty: nothing to tell
}

// startWaiting begins one that first speaks after a time, and then ever more rarely until end.
func startWaiting(log *slog.Logger, first time.Duration) *waiting {
	ctx, stop := context.WithCancel(context.Background())
	w := &waiting{log: log, stop: stop}
	w.over.Go(func() {
		start, pause := time.Now(), first
		for {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			if reason := w.why(ctx); reason != "" && ctx.Err() == nil {
				log.Info("comm: Init waits for "+reason, "since", time.Since(start).Round(time.Second))
			}
			pause = min(2*pause, longestSilence)
		}
	})
	return w
}

func (w *waiting) why(ctx context.Context) string {
	w.mu.Lock()
	reason := w.reason
	w.mu.Unlock()
	if reason == nil {
		return ""
	}
	return reason(ctx)
}

// on says for what is waited from now on.
func (w *waiting) on(reason func(ctx context.Context) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
}

// end ends what startWaiting has begun.
func (w *waiting) end() {
	w.stop()
	w.over.Wait()
}

// reportDelay is how long Init waits without a word.
func (p place) reportDelay() time.Duration {
	if p.local > 0 {
		return secondWord
	}
	return firstWord
}

// unanswered says that the store does not answer, and why the last attempt failed, if one has.
func (p place) unanswered(err error) string {
	reason := "the store at " + p.master
	if !p.hosted {
		reason = fmt.Sprintf("rank 0, which serves the store at %s", p.master)
	}
	if err != nil {
		reason += ": " + err.Error()
	}
	return reason
}

// missing says for which ranks a turn waits, if this rank is the one of its node to tell: the first that is not waited for.
func (p place) missing(ctx context.Context, round store.Store, turn int64) string {
	s := ofTurn(round, turn)
	for rank := max(p.rank-p.local, 1); rank < p.rank; rank++ {
		if come, err := has(ctx, s, infoKey(rank)); err != nil || come {
			return "" // that one tells
		}
	}
	missing, err := missingRanks(ctx, s, p.size)
	switch {
	case err != nil || len(missing) == 0:
		return ""
	case p.local == p.rank && p.rank > 0 && missing[0] != 0:
		return "" // rank 0, which is on this node, tells
	}
	return fmt.Sprintf("%s: %d of %d ranks have come to %s", inRanges(missing), p.size-len(missing), p.size, p.meet)
}

// inRanges is ranks, which are sorted, in words; of many ranges the first.
func inRanges(ranks []int) string {
	const most = 16
	var parts []string
	for i := 0; i < len(ranks); {
		first := i
		for i++; i < len(ranks) && ranks[i] == ranks[i-1]+1; {
			i++
		}
		switch {
		case len(parts) == most:
			return fmt.Sprintf("ranks %s and %d more", strings.Join(parts, ", "), len(ranks)-first)
		case i-first < 3:
			for _, r := range ranks[first:i] {
				parts = append(parts, fmt.Sprint(r))
			}
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", ranks[first], ranks[i-1]))
		}
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}

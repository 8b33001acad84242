package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/store"
)

const (
	// firstLog is the time after which Init logs what it waits for, on the first rank of each node. If that rank has not
	// come after otherLog, another rank of the node logs it.
	firstLog = time.Second
	otherLog = 10 * time.Second
	// longestPause is the longest time between two such lines.
	longestPause = time.Minute
)

// A waiting logs what Init waits for.
type waiting struct {
	log  *slog.Logger
	stop context.CancelFunc
	over sync.WaitGroup

	reason atomic.Pointer[func(ctx context.Context) string] // what Init waits for; nil or empty: log nothing
}

// startWaiting returns a waiting that logs first after a time, and then less and less often until end.
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
			reason := ""
			if why := w.reason.Load(); why != nil {
				reason = (*why)(ctx)
			}
			if reason != "" && ctx.Err() == nil {
				log.Info("comm: Init waits for "+reason, "since", time.Since(start).Round(time.Second))
			}
			pause = min(2*pause, longestPause)
		}
	})
	return w
}

func (w *waiting) on(reason func(ctx context.Context) string) { w.reason.Store(&reason) }

func (w *waiting) end() {
	w.stop()
	w.over.Wait()
}

// firstLog returns how long Init waits before it logs.
func (p place) firstLog() time.Duration {
	if p.local > 0 {
		return otherLog
	}
	return firstLog
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

// withoutStore returns the error of a rank that has found no store: if rank 0 serves the store, and is another rank,
// that it is missing.
func (p place) withoutStore(err error) error {
	if p.hosted || p.rank == 0 {
		return err
	}
	return &MissingError{Missing: []int{0}, Size: p.size, Where: p.meet, After: time.Since(p.began), Err: err, Serves: true}
}

// notAnswered returns err of a call that the store should answer at once. If it has not answered in time, or has ended,
// that names the store and the rank that serves it.
func (p place) notAnswered(err error) error {
	_, broken := errors.AsType[*net.OpError](err)
	switch {
	case p.master == "": // the caller or the machine has the store
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return p.withoutStore(fmt.Errorf("%s: it does not answer: %w", p.unanswered(nil), err))
	case broken, errors.Is(err, io.EOF):
		return p.withoutStore(fmt.Errorf("%s: %w", p.unanswered(nil), err))
	}
	return err
}

// missing says which ranks the others wait for. It returns nothing if another rank of this node logs that: the first
// one that has come.
func (p place) missing(ctx context.Context, round store.Store, generation int64) string {
	s := ofGeneration(round, generation)
	before, known := p.before()
	if !known {
		return "" // local rank 0 logs
	}
	for _, rank := range before {
		if rank == 0 {
			continue // it waits in another way
		}
		if come, err := has(ctx, s, infoKey(rank)); err != nil || come {
			return "" // that rank logs
		}
	}
	missing, err := missingRanks(ctx, s, p.size)
	switch {
	case err != nil || len(missing) == 0:
		return ""
	case slices.Contains(before, 0) && missing[0] != 0:
		return "" // rank 0, which is on this node, logs
	}
	return fmt.Sprintf("%s: %d of %d ranks have come to %s", inRanges(missing), p.size-len(missing), p.size, p.meet)
}

// before returns the ranks of this node that have lower local ranks. known is false if there are some, and nobody says
// which.
func (p place) before() (ranks []int, known bool) {
	switch {
	case p.task != nil && p.task.Local != nil:
		return p.task.Local[:p.local], true
	case p.task != nil && p.here != p.size && p.local > 0:
		return nil, false
	}
	for rank := max(p.rank-p.local, 0); rank < p.rank; rank++ {
		ranks = append(ranks, rank)
	}
	return ranks, true
}

// inRanges writes ranks, which are sorted, as ranges. It writes only the first of many ranges.
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

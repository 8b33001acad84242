package hang

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/progress"
)

// looksAtPace is how many times in a period workers are asked for their pace.
const looksAtPace = 12

// WatchPace calls warn, at most once in a period, with a line about the worker that is slower than the others of this node. It returns when
// the monitor is closed.
func (m *Monitor) WatchPace(period time.Duration, warn func(text string)) {
	if len(m.workers) < 2 {
		return
	}
	again, look := time.NewTicker(period/looksAtPace), time.NewTicker(max(shortestInterval, period/1000))
	defer again.Stop()
	defer look.Stop()
	tallies, begun := make([]tally, len(m.workers)), time.Now()
	stamps := m.stamps()
	for asked := 0; ; {
		select {
		case <-look.C:
			now := m.stamps()
			for i := range tallies {
				tallies[i].looks++
				if !now[i].Equal(stamps[i]) {
					tallies[i].changes++
				}
			}
			stamps = now
			continue
		case <-again.C:
		case <-m.ctx.Done():
			return
		}
		m.askPace(tallies)
		if asked++; asked < looksAtPace {
			continue
		}
		var paces []pace
		for i := range tallies {
			if p, ok := tallies[i].pace(m.workers[i].Rank, time.Since(begun)); ok && !m.gone[i].Load() {
				paces = append(paces, p)
			}
		}
		if text := straggler(paces); text != "" {
			warn(text)
		}
		tallies, begun, asked = make([]tally, len(m.workers)), time.Now(), 0
	}
}

// askPace asks the workers how fast they are now, and records the answers.
func (m *Monitor) askPace(tallies []tally) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i, w := range m.workers {
		asking.Go(func() {
			t := &tallies[i]
			status, silent := ask(ctx, w, false)
			switch {
			case status != nil && status.Pace != nil:
				t.add(status.Pace)
			case status == nil && !silent:
				t.addSteps(w.File)
			}
		})
	}
	asking.Wait()
}

// add records what a worker says of its pace.
func (t *tally) add(p *progress.Pace) {
	if t.group != p.Group {
		*t = tally{group: p.Group, first: p.Operations}
	}
	if p.Operations > t.last { // it has done more since
		t.medians, t.last = append(t.medians, p.Between), p.Operations
	}
}

// addSteps records the number of steps in a worker's file, if there is one.
func (t *tally) addSteps(file string) {
	steps, ok := stepsIn(file)
	switch {
	case !ok:
	case !t.counts || steps < t.last: // the first, or it has begun again
		t.counts, t.first, t.last = true, steps, steps
	default:
		t.last = steps
	}
}

const maxDigits = 20 // of a number of steps

func stepsIn(file string) (steps uint64, ok bool) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }() // it was only read
	text, _ := io.ReadAll(io.LimitReader(f, maxDigits+2))
	steps, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return steps, err == nil
}

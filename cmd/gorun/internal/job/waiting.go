package job

import (
	"log/slog"
	"sync"
	"time"
)

// noticeDelay is how long a node waits before it logs the reason. Most waits are shorter.
const noticeDelay = time.Second

// A waiting logs what this node waits for, once for each reason.
type waiting struct {
	logger *slog.Logger

	mu     sync.Mutex
	reason string
	said   string      // the last one in this wait
	timer  *time.Timer // nil: nothing is to be said
}

func newWaiting(logger *slog.Logger) *waiting { return &waiting{logger: logger} }

// set sets what this node waits for. An empty reason ends the wait.
func (w *waiting) set(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
	switch {
	case reason == "":
		w.said = ""
		if w.timer != nil {
			w.timer.Stop()
			w.timer = nil
		}
	case w.reason != w.said && w.timer == nil:
		w.timer = time.AfterFunc(noticeDelay, w.say)
	}
}

func (w *waiting) say() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return // it was over just now
	}
	w.timer = nil
	if w.reason != w.said {
		w.said = w.reason
		w.logger.Info("waiting: " + w.reason)
	}
}

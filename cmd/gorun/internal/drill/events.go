package drill

import (
	"context"
	"sync"
	"time"
)

// events passes what happens to the goroutine of a drill. Only that goroutine changes the observer. Any goroutine may post.
type events struct {
	queue  chan event
	last   time.Time       // when the last event happened that was taken
	life   context.Context // ends when nobody takes events any more
	die    context.CancelFunc
	others sync.WaitGroup // goroutines that post
}

// An event is something that happened: when, and what it changes.
type event struct {
	at   time.Time
	does func(at time.Time)
}

func newEvents() *events {
	e := &events{queue: make(chan event)}
	e.life, e.die = context.WithCancel(context.Background())
	return e
}

// post passes an event to the goroutine of the drill.
func (e *events) post(does func(at time.Time)) {
	select {
	case e.queue <- event{time.Now(), does}:
	case <-e.life.Done():
	}
}

// takeUntil takes events until the condition is met, or ctx ends.
func (e *events) takeUntil(ctx context.Context, is func() bool) error {
	for !is() {
		select {
		case n := <-e.queue:
			e.last = n.at
			n.does(n.at)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

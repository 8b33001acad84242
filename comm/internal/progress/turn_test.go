package progress

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// A relay ends first as soon as a goroutine has parked, and second after that. In between it lets others in.
type relay struct {
	engine        *Engine
	first, second Request
	moves         int
}

func (r *relay) HasOutput() bool { return false }
func (r *relay) Fail(error)      {}

func (r *relay) Move() bool {
	r.moves++
	switch {
	case r.moves%2 == 0:
		return false
	case !r.first.Ended() && r.engine.parked > 0:
		r.engine.End(&r.first)
	case r.first.Ended() && !r.second.Ended():
		r.engine.End(&r.second)
	}
	return true
}

// The goroutine that stops polling passes its turn to one that has parked. No other moves bytes here.
func TestTheTurnIsPassedOn(t *testing.T) {
	e := New(new(sync.Mutex), 2, Options{})
	r, c := &relay{engine: e}, e.Conn(1)
	e.Add(1, &coalescer{}, r)
	go func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.Poll(&r.first, c)
	}()
	e.mu.Lock()
	for !e.polling {
		e.mu.Unlock()
		runtime.Gosched()
		e.mu.Lock()
	}
	w := e.Park(&r.second, c)
	e.mu.Unlock()
	for !r.second.Ended() {
		select {
		case <-w.Wake:
			e.mu.Lock()
			e.Poll(&r.second, c)
			e.mu.Unlock()
		case <-time.After(time.Minute):
			t.Fatal("it is not its turn")
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Unpark(w); e.parked != 0 || len(e.line) != 0 || e.polling {
		t.Errorf("%d are parked, %d in line", e.parked, len(e.line))
	}
}

// Who waits without polling ends the pause of the engine's goroutine.
func TestAWaitEndsThePause(t *testing.T) {
	for name, wait := range map[string]func(e *Engine){
		"parks":             func(e *Engine) { e.Park(new(Request), nil) },
		"waits for channel": func(e *Engine) { e.Done(new(Request), nil) },
	} {
		for _, isPaused := range []bool{true, false} {
			e := New(new(sync.Mutex), 1, Options{})
			e.isPaused = isPaused
			wait(e)
			wait(e)
			if ended := len(e.resume) == 1; ended != isPaused {
				t.Errorf("%s: paused %v, the pause ends %v", name, isPaused, ended)
			}
		}
	}
}

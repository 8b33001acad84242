// Package membership keeps what the agent of this process says of rounds (package rounds): which round the process is in, whether that is
// over and who has died, and which part it has in the next. Only a process that may survive a round has a [Membership].
package membership

import (
	"context"
	"fmt"
	"sync"

	"github.com/gorun/gorun/env/rounds"
)

// A Membership follows what the agent says. Its methods may be called from several goroutines.
type Membership struct {
	conn   *rounds.Conn
	events Events

	mu       sync.Mutex
	round    int           // that this process is in
	over     *rounds.Round // the last document that says that this round is over; nil: it goes on
	next     *rounds.Round // the newest that has been formed, until it is entered; nil: none
	nextOver *rounds.Round // the last document that says that next is over; nil: it goes on
	err      error         // why the agent says no more
	news     chan struct{} // closed, and made again, when one of these changes
}

// Events are called by one goroutine.
type Events struct {
	Over func(rounds.Round) // each time that the agent says that the present round is over
	End  func()             // when the agent says no more
}

// Connect connects this process, which is in a round, to its agent.
func Connect(ctx context.Context, socket string, round int, events Events) (*Membership, error) {
	conn, err := rounds.Connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	m := &Membership{conn: conn, round: round, events: events, news: make(chan struct{})}
	m.take(conn.Round, nil)
	go m.follow()
	return m, nil
}

// follow takes in what the agent says.
func (m *Membership) follow() {
	for {
		r, err := m.conn.Next()
		if m.take(r, err) {
			m.events.Over(r)
		}
		if err != nil {
			m.events.End()
			return
		}
	}
}

// take records what the agent has said, and reports whether it is that the present round is over.
func (m *Membership) take(r rounds.Round, err error) (isOver bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.err = err
	case !r.Over && r.Round > m.round:
		m.next, m.nextOver = &r, nil
	case r.Over && r.Round == m.round:
		m.over, isOver = &r, true
	case r.Over && m.next != nil && r.Round == m.next.Round:
		m.nextOver = &r
	}
	close(m.news)
	m.news = make(chan struct{})
	return isOver
}

// Over returns the document that says that the present round is over, or nil while it goes on.
func (m *Membership) Over() *rounds.Round {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last()
}

// last is Over, with the mutex held. A round is also over when the next one has been formed.
func (m *Membership) last() *rounds.Round {
	if m.over == nil && m.next != nil {
		return &rounds.Round{Round: m.round, Over: true, Died: m.next.Died}
	}
	return m.over
}

// HasEnded reports whether the agent says no more.
func (m *Membership) HasEnded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err != nil
}

// An OverError says that a round is over.
type OverError struct{ Round rounds.Round }

func (e *OverError) Error() string {
	text := fmt.Sprintf("round %d is over", e.Round.Round)
	switch {
	case len(e.Round.Died) > 0:
		d := e.Round.Died[0]
		text += fmt.Sprintf(": rank %d on %s: %s", d.Rank, d.Host, d.Reason)
	case e.Round.Why != "":
		text += ": " + e.Round.Why
	}
	return text
}

// During returns a context that ends, with an OverError as its cause, when the present round is over.
func (m *Membership) During(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			m.mu.Lock()
			over, news := m.last(), m.news
			m.mu.Unlock()
			if over != nil {
				cancel(&OverError{*over})
			}
			select {
			case <-news:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Revoke asks the agent to end the present round for all ranks, unless it is over as far as is known here.
func (m *Membership) Revoke(why string) error {
	m.mu.Lock()
	round, over := m.round, m.last()
	m.mu.Unlock()
	if over != nil {
		return nil
	}
	return m.conn.Revoke(round, why)
}

// Await waits for the next round.
func (m *Membership) Await(ctx context.Context) error {
	for {
		m.mu.Lock()
		round, over, next, err, news := m.round, m.over, m.next, m.err, m.news
		m.mu.Unlock()
		if next != nil {
			return nil
		}
		state := fmt.Sprintf("the agent has not said that round %d is over", round)
		if over != nil {
			state = (&OverError{*over}).Error()
		}
		if err != nil {
			return fmt.Errorf("%s, and %w", state, err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("there is no round after round %d yet: %s: %w", round, state, context.Cause(ctx))
		}
	}
}

// Enter enters the round for which Await has waited, or a later one.
func (m *Membership) Enter() (rounds.Round, error) {
	m.mu.Lock()
	next := *m.next
	m.round, m.over, m.next, m.nextOver = next.Round, m.nextOver, nil, nil
	m.mu.Unlock()
	return next, m.conn.Enter(next.Round)
}

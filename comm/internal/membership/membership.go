// Package membership is this process's part in the rounds of its job, as its agent tells of them (package rounds): which round it is in,
// whether that is over, and because of whom, and what it is in the next. It is for processes that outlive a round; others have no
// membership.
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
	onOver func(rounds.Round)

	mu    sync.Mutex
	round int           // that this process is in
	over  *rounds.Round // the last word on that round; nil: it goes on
	next  *rounds.Round // the newest that has been formed, until it is entered
	err   error         // why the agent says no more
	news  chan struct{} // closed, and made again, when one of these changes
}

// Connect connects this process, which is in a round, to its agent. onOver is called each time that the agent says that it is over, by one
// goroutine.
func Connect(ctx context.Context, socket string, round int, onOver func(rounds.Round)) (*Membership, error) {
	conn, err := rounds.Connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	m := &Membership{conn: conn, round: round, onOver: onOver, news: make(chan struct{})}
	go m.follow()
	return m, nil
}

// follow takes in what the agent says.
func (m *Membership) follow() {
	for {
		r, err := m.conn.Next()
		if m.take(r, err) {
			m.onOver(r)
		}
		if err != nil {
			return
		}
	}
}

// take reports whether the present round is over.
func (m *Membership) take(r rounds.Round, err error) (isOver bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.err = err
	case !r.Over && r.Round > m.round:
		m.next = &r
	case r.Over && r.Round == m.round:
		m.over, isOver = &r, true
	}
	close(m.news)
	m.news = make(chan struct{})
	return isOver
}

// An OverError says that a round is over.
type OverError struct{ Round rounds.Round }

func (e *OverError) Error() string {
	text := fmt.Sprintf("round %d is over", e.Round.Round)
	if len(e.Round.Died) > 0 {
		d := e.Round.Died[0]
		text += fmt.Sprintf(": rank %d on %s: %s", d.Rank, d.Host, d.Reason)
	}
	return text
}

// During returns a context that ends, with an OverError as its cause, when the present round is over.
func (m *Membership) During(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			m.mu.Lock()
			over, next, news := m.over, m.next, m.news
			m.mu.Unlock()
			if over == nil && next != nil {
				over = &rounds.Round{Round: next.Round - 1, Over: true, Died: next.Died}
			}
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

// Enter waits for the next round, and enters it.
func (m *Membership) Enter(ctx context.Context) (rounds.Round, error) {
	for {
		m.mu.Lock()
		next, err, news := m.next, m.err, m.news
		if next != nil {
			m.round, m.next, m.over = next.Round, nil, nil
		}
		m.mu.Unlock()
		switch {
		case next != nil:
			return *next, m.conn.Enter(next.Round)
		case err != nil:
			return rounds.Round{}, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return rounds.Round{}, fmt.Errorf("no other round has been formed: %w", context.Cause(ctx))
		}
	}
}

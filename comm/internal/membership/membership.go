// Package membership keeps what the agent of this process says of rounds (package env): which round the process is in, whether that round
// is over and who has died, and which rank the process has in the next one. Only a process that may survive a round has a [Membership].
package membership

import (
	"context"
	"fmt"
	"sync"

	"github.com/gorun/gorun/env"
)

// A Membership follows what the agent says. Its methods may be called from several goroutines.
type Membership struct {
	conn *env.Conn

	mu    sync.Mutex
	round *Round        // the round that this process is in
	next  *Round        // the newest round that has been formed, until Enter enters it; nil: there is none
	begun *env.Round    // the document about next
	err   error         // why the agent says no more
	news  chan struct{} // closed, and made again, when one of these changes
}

// Connect connects this process, which is in a round, to its agent.
func Connect(ctx context.Context, socket string, round int) (*Membership, error) {
	conn, err := env.Connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	m := &Membership{conn: conn, round: NewRound(round), news: make(chan struct{})}
	m.take(conn.Round, nil)
	go m.follow()
	return m, nil
}

// follow records what the agent says, until it says no more.
func (m *Membership) follow() {
	for {
		r, err := m.conn.Next()
		if m.take(r, err); err != nil {
			return
		}
	}
}

// take records what the agent has said, or that it will say no more. If the next round has been formed, this one is over, even if the agent
// has not said so.
func (m *Membership) take(r env.Round, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.err = err
		m.round.close()
		if m.next != nil {
			m.next.close()
		}
	case !r.Over && r.Round > m.round.Number:
		m.next, m.begun = NewRound(r.Round), &r
		if m.round.Over() == nil {
			m.round.End(env.Round{Round: m.round.Number, Over: true, Died: r.Died})
		}
	case r.Over && r.Round == m.round.Number:
		m.round.End(r)
	case r.Over && m.next != nil && r.Round == m.next.Number:
		m.next.End(r)
	}
	close(m.news)
	m.news = make(chan struct{})
}

// Round is the round that this process is in.
func (m *Membership) Round() *Round {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.round
}

// Revoke asks the agent to end the present round for all ranks, unless it is over as far as is known here. missing are ranks that have not
// come to the round, if that is why.
func (m *Membership) Revoke(why string, missing ...int) error {
	round := m.Round()
	if round.Over() != nil {
		return nil
	}
	return m.conn.Revoke(round.Number, why, missing...)
}

// Await waits for the next round.
func (m *Membership) Await(ctx context.Context) error {
	for {
		m.mu.Lock()
		round, next, err, news := m.round, m.next, m.err, m.news
		m.mu.Unlock()
		switch {
		case next != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%s, and %w", round.state(), err)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("there is no round after round %d yet: %s: %w", round.Number, round.state(), context.Cause(ctx))
		}
	}
}

// Enter enters the round for which Await has waited, or a later one.
func (m *Membership) Enter() (env.Round, error) {
	m.mu.Lock()
	next := *m.begun
	m.round, m.next = m.next, nil
	m.mu.Unlock()
	return next, m.conn.Enter(next.Round)
}

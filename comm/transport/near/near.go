// Package near is the transport between ranks of one machine: streams through memory that they share, and another transport for
// all other ranks, and where memory is refused.
package near

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/transport"
)

// Config says who this rank is and where its neighbours are.
type Config struct {
	World uint64
	Rank  int
	Peers []string // addresses of acceptors by rank; empty: not to be reached through memory
	Token []byte   // as the acceptors have it
	// Without is called with the reason if a stream gets no memory but can do without. Its error refuses the stream.
	Without func(reason error) error
}

// Transport implements transport.Transport.
type Transport struct {
	cfg      Config
	place    acceptor.Place
	acceptor *acceptor.Acceptor
	others   transport.Transport
}

// New returns a transport. The acceptor a, which stays the caller's, accepts streams from ranks of this machine. The transport owns
// others, which carries all other streams, from now on.
func New(a *acceptor.Acceptor, others transport.Transport, cfg Config) *Transport {
	here := 1
	for r, address := range cfg.Peers {
		if address != "" && r != cfg.Rank {
			here++
		}
	}
	return &Transport{
		cfg: cfg, acceptor: a, others: others,
		place: acceptor.Place{World: cfg.World, Rank: cfg.Rank, Ranks: len(cfg.Peers), Here: here},
	}
}

// Serve implements transport.Transport.
func (t *Transport) Serve(h transport.Handler) {
	t.others.Serve(h)
	t.acceptor.Serve(t.place, h)
}

// Close implements transport.Transport.
func (t *Transport) Close() error {
	t.acceptor.StopServing()
	return t.others.Close()
}

// Dial implements transport.Transport.
func (t *Transport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	if rank < 0 || rank >= len(t.cfg.Peers) || t.cfg.Peers[rank] == "" {
		return t.others.Dial(ctx, rank)
	}
	conn, reason := t.place.Dial(ctx, t.cfg.Peers[rank], t.cfg.Token, rank)
	switch {
	case reason == nil, errors.Is(reason, transport.ErrCrossed):
		return conn, reason
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w (last error: %w)", context.Cause(ctx), reason)
	}
	conn, err := t.others.Dial(ctx, rank) // which fails too if the rank has gone
	if err != nil {
		return nil, err
	}
	if err := t.cfg.Without(reason); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Package near is the transport between ranks of one machine, through streams in shared memory. It uses another
// transport for ranks of other machines, and for streams that get no shared memory.
package near

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gorun/gorun/comm/internal/shm/acceptor"
	"github.com/gorun/gorun/comm/internal/transport"
)

// Config says who this rank is and where the acceptors of its peers are.
type Config struct {
	World uint64
	Rank  int
	Peers []string // addresses of acceptors by rank; empty: the rank cannot be reached through memory
	Token []byte   // the same as the acceptors have
	// OnFallback is called with the reason if a stream gets no memory and the other transport works. If it returns an
	// error, Dial fails with that.
	OnFallback func(reason error) error
}

// Transport implements transport.Transport.
type Transport struct {
	cfg      Config
	self     acceptor.Self
	acceptor *acceptor.Acceptor
	others   transport.Transport
}

// New returns a transport. The acceptor a accepts streams from ranks of this machine; the caller keeps owning it. The
// transport owns others, which carries all other streams.
func New(a *acceptor.Acceptor, others transport.Transport, cfg Config) *Transport {
	here := 1
	for r, address := range cfg.Peers {
		if address != "" && r != cfg.Rank {
			here++
		}
	}
	return &Transport{
		cfg: cfg, acceptor: a, others: others,
		self: acceptor.Self{World: cfg.World, Rank: cfg.Rank, Ranks: len(cfg.Peers), Here: here},
	}
}

// Serve implements transport.Transport.
func (t *Transport) Serve(h transport.Handler) {
	t.others.Serve(h)
	t.acceptor.Serve(t.self, h)
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
	conn, reason := t.self.Dial(ctx, t.cfg.Peers[rank], t.cfg.Token, rank)
	switch {
	case reason == nil, errors.Is(reason, transport.ErrCrossed):
		return conn, reason
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w (last error: %w)", context.Cause(ctx), reason)
	}
	conn, err := t.others.Dial(ctx, rank) // if the rank has gone, this fails as well
	if err != nil {
		return nil, err
	}
	if err := t.cfg.OnFallback(reason); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

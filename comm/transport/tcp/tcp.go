// Package tcp is the transport between nodes, and between processes of one node when shared memory is not to be
// had: one stream per pair of ranks that talk, opened when it is first needed. It is one TCP connection, or a bundle of
// several where one would not carry what the network does, see connections.
//
// Every connection opens with a mutual challenge on the job's token (package auth), so that a stranger, a port
// scanner or a worker of another job is turned away before it can send a frame. Package admission bounds what those cost who
// have not proven themselves.
package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/keepalive"
)

const (
	handshakeTimeout = admission.DefaultTime
	firstWord        = time.Second // after which a connection that is awaited is told of
	firstPause       = 10 * time.Millisecond
	longestPause     = 500 * time.Millisecond
)

// Config says who this rank is and where its peers listen.
type Config struct {
	World uint64       // names the world; ranks of different worlds refuse each other
	Rank  int          // this rank
	Peers []string     // host:port by rank
	Token []byte       // shared secret
	Log   *slog.Logger // nil: silent

	Connections int // of a stream that this rank opens, at most MostConnections; 0: as many as its way needs
	Here        int // ranks of this rank's machine, which share its network; 0: it alone

	TLS  *auth.Identity           // encrypts streams that leave the machine; nil: none is encrypted
	Near func(conn net.Conn) bool // which do not; nil: those whose ends have one address, or loopback ones
}

// Transport implements transport.Transport over TCP.
type Transport struct {
	cfg    Config
	ln     net.Listener
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	wg     sync.WaitGroup
	stripe int // see bundle

	gatherings gatherings
}

// New returns a transport that accepts peers on ln, which it owns from now on.
func New(ln net.Listener, cfg Config) *Transport {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Near == nil {
		cfg.Near = machine.Inside
	}
	t := &Transport{cfg: cfg, ln: ln, stripe: stripe}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// Addr is where peers are accepted.
func (t *Transport) Addr() net.Addr { return t.ln.Addr() }

// Serve implements transport.Transport.
func (t *Transport) Serve(h transport.Handler) {
	ln := admission.Listen(t.ln, admission.Config{Log: t.cfg.Log.With("rank", t.cfg.Rank).Info})
	t.ln = ln
	t.wg.Go(func() {
		for {
			conn, err := ln.AcceptConn()
			if err != nil {
				return
			}
			t.wg.Go(func() { t.accept(conn, h) })
		}
	})
}

// Close implements transport.Transport.
func (t *Transport) Close() error {
	t.stop()
	err := t.ln.Close()
	t.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// accept runs the handshake with whoever opened c, and hands a peer to h once its stream is whole.
func (t *Transport) accept(c *admission.Conn, h transport.Handler) {
	conn := c.NetConn()
	defer context.AfterFunc(t.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var from hello
	var whole *gathering
	admitted := false
	_, err := auth.Accept(c, t.cfg.Token, func(said []byte) (reply []byte, err error) {
		switch from, err = t.checkHello(said); {
		case err != nil:
			return nil, err
		case !c.Admit():
			return nil, net.ErrClosed
		}
		_ = conn.SetDeadline(time.Now().Add(handshakeTimeout)) // for what is left to do
		switch {
		case t.ctx.Err() != nil:
			return nil, net.ErrClosed
		case from.part > 0:
			return replyWelcome, t.gatherings.add(from, nil)
		case !h.Admit(int(from.rank)):
			return replyCrossed, nil
		}
		admitted, whole = true, t.gatherings.begin(from)
		return replyWelcome, nil
	})
	switch {
	case err == nil && from.part > 0:
		if err = t.gatherings.add(from, conn); err == nil {
			return
		}
	case admitted:
		if err = t.admit(conn, from, whole, err, h); err == nil {
			return
		}
	}
	if err != nil && t.ctx.Err() == nil {
		c.TurnedAway(err)
	}
	_ = c.Close()
	if admitted {
		h.Connected(int(from.rank), nil)
	}
}

// admit hands the stream that begins with first to h, unless there is none, because of err or another error.
func (t *Transport) admit(first net.Conn, from hello, whole *gathering, err error, h transport.Handler) error {
	rank := int(from.rank)
	conn, err := t.gathered(whole, from.rank, first, err)
	var stream net.Conn
	if err == nil {
		stream, err = t.secure(conn, rank, t.cfg.Rank)
	}
	if err == nil {
		err = errors.Join(conn.SetDeadline(time.Time{}), t.ctx.Err())
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return err
	}
	h.Connected(rank, t.tuned(conn, stream))
	return nil
}

// Dial implements transport.Transport. A machine that gives no answer is lost after keepalive.Limit, as it is later.
func (t *Transport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	if rank < 0 || rank >= len(t.cfg.Peers) {
		return nil, fmt.Errorf("no rank %d in a world of %d", rank, len(t.cfg.Peers))
	}
	defer time.AfterFunc(firstWord, func() {
		t.cfg.Log.Warn("waiting for a connection", "to_rank", rank, "at", t.cfg.Peers[rank], "rank", t.cfg.Rank)
	}).Stop()
	answered := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := t.dialOnce(ctx, rank)
		switch silent := noAnswer(err); {
		case !silent:
			answered = time.Now()
		case time.Since(answered) >= keepalive.Limit:
			return nil, fmt.Errorf("its machine did not answer for half a minute: %w", err)
		}
		var refused *auth.RefusedError
		if err == nil || errors.Is(err, transport.ErrCrossed) || errors.Is(err, syscall.ECONNREFUSED) ||
			errors.Is(err, auth.ErrWrongToken) || errors.As(err, &refused) {
			return conn, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // those who were sent away together are not to come back together
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (last error: %w)", context.Cause(ctx), err)
		}
	}
}

// noAnswer reports whether a machine has not answered a call.
func noAnswer(err error) bool {
	call, ok := errors.AsType[*net.OpError](err)
	return ok && call.Op == "dial" && (call.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH))
}

func (t *Transport) dialOnce(ctx context.Context, rank int) (net.Conn, error) {
	conn, err := t.connect(ctx, rank)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	stream, err := t.secure(conn, t.cfg.Rank, rank)
	if err == nil {
		err = errors.Join(conn.SetDeadline(time.Time{}), ctx.Err())
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return t.tuned(conn, stream), nil
}

// connect opens all connections of a stream to rank: the first says how many there will be.
func (t *Transport) connect(ctx context.Context, rank int) (net.Conn, error) {
	h := t.hello(rank)
	first, err := t.call(ctx, &h)
	if err != nil || h.parts == 1 {
		return first, err
	}
	conns, errs := make([]net.Conn, h.parts), make([]error, h.parts)
	conns[0] = first
	var others sync.WaitGroup
	for i := 1; i < len(conns); i++ {
		others.Go(func() {
			h := h
			h.part = uint8(i)
			conns[i], errs[i] = t.call(ctx, &h)
		})
	}
	others.Wait()
	if err := errors.Join(errs...); err != nil {
		closeConns(conns)
		return nil, err
	}
	return newBundle(conns, t.stripe), nil
}

// call opens one connection and says h, in which it completes how many there will be. For the other machine it waits for
// keepalive.Limit at most, and then for its process until ctx ends.
func (t *Transport) call(ctx context.Context, h *hello) (net.Conn, error) {
	address := t.cfg.Peers[h.to]
	limited, cancel := context.WithTimeout(ctx, keepalive.Limit)
	defer cancel()
	conn, err := admission.Connect(limited, new(net.Dialer).DialContext, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if h.parts == 0 {
		h.parts = uint8(t.connections(conn))
	}
	reply, err := auth.Dial(conn, t.cfg.Token, h.bytes())
	switch {
	case err != nil:
		err = fmt.Errorf("handshake with %s: %w", address, err)
	case string(reply) == string(replyCrossed):
		err = transport.ErrCrossed
	default:
		return conn, nil
	}
	_ = conn.Close()
	return nil, err
}

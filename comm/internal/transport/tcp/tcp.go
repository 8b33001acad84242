// Package tcp is the transport between nodes. Ranks of one node that cannot share memory use it as well. Each pair of
// ranks that talk has one stream, which is opened when it is first needed. A stream is one TCP connection, or a bundle
// of several if the network is faster than one connection (connections.go).
//
// Every connection begins with a handshake in which both ends prove that they have the job's token (package auth). So a
// stranger, a port scanner or a worker of another job is turned away before it can send a frame. Package admission
// bounds how many connections may be in that handshake.
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
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

const (
	handshakeTimeout = admission.DefaultTime
	firstWarning     = time.Second // after which Dial logs that it waits
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

	Connections int // of a stream that this rank opens, at most MostConnections; 0: as many as the network needs
	Here        int // ranks of this rank's machine, which share its network interface; 0: only this one

	TLS  *auth.Identity           // encrypts streams that leave the machine; nil: none is encrypted
	Near func(conn net.Conn) bool // reports whether conn stays on this machine; nil: machine.Inside
}

// Transport implements transport.Transport over TCP.
type Transport struct {
	cfg    Config
	ln     net.Listener
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	wg     sync.WaitGroup
	stripe int // see bundle

	pending pendingBundles
}

// shortRoundTrip is the longest round trip of a network on which BBR does not pay.
const shortRoundTrip = 2 * time.Millisecond

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

// Addr is the address of the listener.
func (t *Transport) Addr() net.Addr { return t.ln.Addr() }

// Serve implements transport.Transport.
func (t *Transport) Serve(h transport.Handler) {
	ln := admission.Listen(t.ln, admission.Config{Log: t.cfg.Log.With("rank", t.cfg.Rank).Info})
	t.ln = ln
	t.wg.Go(func() { ln.Serve(&t.wg, func(c *admission.Conn) { t.accept(c, h) }) })
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

// accept runs the handshake of c. Once all connections of a peer's stream have come, it hands the stream to h.
func (t *Transport) accept(c *admission.Conn, h transport.Handler) {
	conn := c.NetConn().(*net.TCPConn)
	defer context.AfterFunc(t.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var from hello
	var pending *pendingBundle // the stream that begins with conn, once h has admitted it
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
		case from.index > 0:
			return transport.ReplyWelcome, t.pending.add(from, nil)
		case !h.Admit(int(from.From)):
			return transport.ReplyCrossed, nil
		}
		pending = t.pending.begin(from)
		return transport.ReplyWelcome, nil
	})
	var stream net.Conn
	switch {
	case err == nil && from.index > 0:
		if err = t.pending.add(from, conn); err == nil {
			return
		}
	case pending != nil:
		if stream, err = t.assemble(pending, from, conn, err); err == nil {
			h.Connected(int(from.From), stream)
			return
		}
	}
	if err != nil && t.ctx.Err() == nil {
		c.TurnedAway(err)
	}
	_ = c.Close()
	if pending != nil {
		h.Connected(int(from.From), nil)
	}
}

// ready returns the stream that b is, by which rank from has called rank to. It closes b if that fails, or if ctx has
// ended.
func (t *Transport) ready(ctx context.Context, b *bundle, from, to int) (net.Conn, error) {
	stream, err := t.secure(b, from, to)
	if err == nil {
		err = errors.Join(b.SetDeadline(time.Time{}), ctx.Err())
	}
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	for _, c := range b.conns {
		network.KeepAlive(c, !t.cfg.Near(c))
		chooseControl(c, shortRoundTrip)
		limitUnsent(c)
	}
	return pollable(b, stream), nil
}

// Dial implements transport.Transport. If the other machine does not answer for keepalive.Limit, Dial gives up, as an
// established connection does.
func (t *Transport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	if rank < 0 || rank >= len(t.cfg.Peers) {
		return nil, fmt.Errorf("no rank %d in a world of %d", rank, len(t.cfg.Peers))
	}
	defer time.AfterFunc(firstWarning, func() {
		t.cfg.Log.Warn("waiting for a connection", "to_rank", rank, "at", t.cfg.Peers[rank], "rank", t.cfg.Rank)
	}).Stop()
	var silence silence
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		conn, err := t.dialOnce(ctx, rank, silence.limit(began))
		if silence.note(err, began, time.Now()) >= network.KeepAliveLimit {
			return nil, fmt.Errorf("its machine did not answer for half a minute: %w", err)
		}
		var refused *auth.RefusedError
		if err == nil || errors.Is(err, transport.ErrCrossed) || errors.Is(err, syscall.ECONNREFUSED) ||
			errors.Is(err, auth.ErrWrongToken) || errors.As(err, &refused) {
			return conn, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // jitter: ranks that were turned away together must not come back together
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (last error: %w)", context.Cause(ctx), err)
		}
	}
}

// dialOnce opens all connections of a stream to rank. The hello of the first one says how many there are. limit is as
// in call.
func (t *Transport) dialOnce(ctx context.Context, rank int, limit time.Time) (net.Conn, error) {
	h := t.hello(rank)
	first, err := t.call(ctx, &h, limit)
	if err != nil {
		return nil, err
	}
	conns, errs := make([]*net.TCPConn, h.count), make([]error, h.count)
	conns[0] = first
	var others sync.WaitGroup
	for i := 1; i < len(conns); i++ {
		others.Go(func() {
			h := h
			h.index = uint8(i)
			conns[i], errs[i] = t.call(ctx, &h, limit)
		})
	}
	others.Wait()
	b := newBundle(conns, t.stripe)
	if err := errors.Join(errs...); err != nil {
		_ = b.Close()
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = b.SetDeadline(time.Unix(1, 0)) })()
	return t.ready(ctx, b, t.cfg.Rank, rank)
}

// call opens one connection and sends h. If h has no count yet, call sets it. It waits for the other machine until
// limit at most, and then for the process there until ctx ends.
func (t *Transport) call(ctx context.Context, h *hello, limit time.Time) (*net.TCPConn, error) {
	address := t.cfg.Peers[h.To]
	limited, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	c, err := admission.Connect(limited, (&net.Dialer{Control: WithoutBBR}).DialContext, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.TCPConn)
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if h.count == 0 {
		h.count = uint8(t.connections(conn))
	}
	reply, err := auth.Dial(conn, t.cfg.Token, h.bytes())
	switch {
	case err != nil:
		err = fmt.Errorf("handshake with %s: %w", address, err)
	case string(reply) == string(transport.ReplyCrossed):
		err = transport.ErrCrossed
	default:
		return conn, nil
	}
	_ = conn.Close()
	return nil, err
}

// Package tcp is the transport between nodes, and between processes of one node when shared memory is not to be
// had: one TCP connection per pair of ranks that talk, opened when it is first needed.
//
// Every connection opens with a mutual challenge on the job's token (package auth), so that a stranger, a port
// scanner or a worker of another job is turned away before it can send a frame. What has not proven itself costs
// at most maxUnproven connections for handshakeTimeout.
package tcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/comm/transport"
	"github.com/gorun/gorun/env/auth"
)

const (
	handshakeTimeout = 10 * time.Second
	maxUnproven      = 128
	firstPause       = 10 * time.Millisecond
	longestPause     = 500 * time.Millisecond
)

// Config says who this rank is and where its peers listen.
type Config struct {
	World uint64       // names the world; ranks of different worlds refuse each other
	Rank  int          // this rank
	Peers []string     // host:port by rank
	Token []byte       // shared secret; may be empty on loopback
	Log   *slog.Logger // nil: silent

	TLS  *auth.Identity           // encrypts streams that leave the machine; nil: none is encrypted
	Near func(conn net.Conn) bool // which do not; nil: those whose ends have one address, or loopback ones
}

// Transport implements transport.Transport over TCP.
type Transport struct {
	cfg     Config
	ln      net.Listener
	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	wg      sync.WaitGroup
	unknown chan struct{} // a slot for every connection that has not proven itself
}

// New returns a transport that accepts peers on ln, which it owns from now on.
func New(ln net.Listener, cfg Config) *Transport {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Near == nil {
		cfg.Near = OnOneMachine
	}
	t := &Transport{cfg: cfg, ln: ln, unknown: make(chan struct{}, maxUnproven)}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// Addr is where peers are accepted.
func (t *Transport) Addr() net.Addr { return t.ln.Addr() }

// Serve implements transport.Transport.
func (t *Transport) Serve(h transport.Handler) {
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		for {
			conn, err := t.ln.Accept()
			if t.ctx.Err() != nil {
				if err == nil {
					_ = conn.Close()
				}
				return
			}
			if err != nil {
				t.cfg.Log.Warn("cannot accept a connection", "error", err)
				select { // most likely out of descriptors: let some go
				case <-time.After(longestPause):
				case <-t.ctx.Done():
				}
				continue
			}
			select {
			case t.unknown <- struct{}{}:
			case <-t.ctx.Done():
				_ = conn.Close()
				return
			}
			t.wg.Add(1)
			go func() {
				defer t.wg.Done()
				t.accept(conn, h)
				<-t.unknown
			}()
		}
	}()
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

// accept runs the handshake with whoever opened conn and hands a peer to h.
func (t *Transport) accept(conn net.Conn, h transport.Handler) {
	defer context.AfterFunc(t.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	admitted := -1
	_, err := auth.Accept(conn, t.cfg.Token, func(hello []byte) ([]byte, error) {
		from, err := t.checkHello(hello)
		if err != nil {
			return nil, err
		}
		if !h.Admit(from) {
			return replyCrossed, nil
		}
		admitted = from
		return replyWelcome, nil
	})
	stream := conn
	if err == nil && admitted >= 0 {
		stream, err = t.secure(conn, admitted, t.cfg.Rank)
	}
	switch {
	case err == nil && admitted >= 0 && conn.SetDeadline(time.Time{}) == nil && t.ctx.Err() == nil:
		h.Connected(admitted, t.tuned(conn, stream))
		return
	case admitted >= 0:
		h.Connected(admitted, nil)
	}
	if err != nil && t.ctx.Err() == nil {
		t.cfg.Log.Info("turned away a connection", "from", conn.RemoteAddr().String(), "reason", err)
	}
	_ = conn.Close()
}

var (
	replyWelcome = []byte("welcome")
	replyCrossed = []byte("crossed")
)

// The dialler's hello: the world, who calls, who is called.
func (t *Transport) hello(to int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, t.cfg.World)
	b = binary.LittleEndian.AppendUint32(b, uint32(t.cfg.Rank))
	return binary.LittleEndian.AppendUint32(b, uint32(to))
}

func (t *Transport) checkHello(b []byte) (from int, err error) {
	if len(b) != 16 {
		return 0, fmt.Errorf("hello of %d bytes", len(b))
	}
	from, to := int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint32(b[12:]))
	switch {
	case binary.LittleEndian.Uint64(b) != t.cfg.World:
		return 0, errors.New("belongs to another world (an earlier round, or another job)")
	case to != t.cfg.Rank:
		return 0, fmt.Errorf("looks for rank %d, this is rank %d", to, t.cfg.Rank)
	case from >= len(t.cfg.Peers) || from == t.cfg.Rank:
		return 0, fmt.Errorf("calls itself rank %d of %d", from, len(t.cfg.Peers))
	}
	return from, nil
}

// Dial implements transport.Transport.
func (t *Transport) Dial(ctx context.Context, rank int) (net.Conn, error) {
	if rank < 0 || rank >= len(t.cfg.Peers) {
		return nil, fmt.Errorf("no rank %d in a world of %d", rank, len(t.cfg.Peers))
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := t.dialOnce(ctx, rank)
		var refused *auth.RefusedError
		if err == nil || errors.Is(err, transport.ErrCrossed) || errors.Is(err, syscall.ECONNREFUSED) ||
			errors.Is(err, auth.ErrWrongToken) || errors.As(err, &refused) {
			return conn, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (last error: %w)", context.Cause(ctx), err)
		}
	}
}

func (t *Transport) dialOnce(ctx context.Context, rank int) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.cfg.Peers[rank])
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var stream net.Conn
	reply, err := auth.Dial(conn, t.cfg.Token, t.hello(rank))
	switch {
	case err != nil:
		err = fmt.Errorf("handshake with %s: %w", t.cfg.Peers[rank], err)
	case string(reply) == string(replyCrossed):
		err = transport.ErrCrossed
	default:
		stream, err = t.secure(conn, t.cfg.Rank, rank)
		if err == nil {
			err = errors.Join(conn.SetDeadline(time.Time{}), ctx.Err())
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return t.tuned(conn, stream), nil
}

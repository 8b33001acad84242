package tcpstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// A dialer connects a client to its server.
type dialer struct {
	addr    string
	creds   credentials
	onRetry func(err error)
}

// dial tries to connect until it succeeds, the answer is final, or ctx ends.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	const firstPause, longestPause = 5 * time.Millisecond, 200 * time.Millisecond
	if _, _, err := net.SplitHostPort(d.addr); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	start := time.Now()
	var last error
	var unreachable time.Time // since when this machine has not reached its own loopback address; zero: it has
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := d.try(ctx)
		if err == nil {
			return conn, nil
		}
		if final := d.final(err); final != nil {
			return nil, final
		}
		switch now := time.Now(); {
		case !hasNoLoopback(err):
			unreachable = time.Time{}
		case unreachable.IsZero():
			unreachable = now
		case now.Sub(unreachable) >= loopbackTime:
			return nil, fmt.Errorf("store at %s: this machine does not reach its own loopback address (is the interface lo up?): %w", d.addr, withoutAddress(err))
		}
		if last == nil || !isOver(ctx) { // an attempt that was cut short says less than the ones before it
			last = err
			if d.onRetry != nil {
				d.onRetry(withoutAddress(err))
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, &unansweredError{addr: d.addr, after: time.Since(start), last: last, ended: ctx.Err()}
		}
	}
}

// loopbackTime is how long Dial waits for the address of a loopback interface. Nothing brings that up later, unless
// this machine starts.
const loopbackTime = 3 * time.Second

// hasNoLoopback reports whether err says that there is no way to the loopback address which was dialed.
func hasNoLoopback(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return false
	}
	at, ok := op.Addr.(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return false
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) { // it may also mean that no port is free
		mine, err := net.InterfaceAddrs()
		return err == nil && !slices.ContainsFunc(mine, func(a net.Addr) bool {
			prefix, ok := a.(*net.IPNet)
			return ok && prefix.Contains(at.IP)
		})
	}
	return errors.Is(err, syscall.ENETUNREACH)
}

// final returns the error of Dial if another attempt would fail with err again, nil otherwise.
func (d *dialer) final(err error) error {
	_, refused := errors.AsType[*auth.RefusedError](err)
	switch {
	case errors.Is(err, auth.ErrWrongToken):
		return d.creds.token.RefusedBy("store at " + d.addr)
	case refused:
		return fmt.Errorf("store at %s %w", d.addr, err)
	case errors.Is(err, auth.ErrNoToken):
		return fmt.Errorf("store at %s: %w", d.addr, err)
	case errors.Is(err, auth.ErrNotGorun):
		return fmt.Errorf("store at %s: something else listens there: %w", d.addr, err)
	}
	return nil
}

func (d *dialer) try(ctx context.Context) (net.Conn, error) {
	conn, err := admission.Connect(ctx, new(net.Dialer).DialContext, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(admission.DefaultTime))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	stream, err := d.creds.clientHandshake(ctx, conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return stream, conn.SetDeadline(time.Time{})
}

// isOver reports whether ctx has ended or its deadline has passed: an attempt that fails at the deadline can be ahead
// of ctx.
func isOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// An unansweredError says that no attempt succeeded in time. It wraps the error of the last attempt and that of the
// context.
type unansweredError struct {
	addr        string
	after       time.Duration
	last, ended error
}

// Error names the address, why the last attempt failed, and how long it all took.
func (e *unansweredError) Error() string {
	return fmt.Sprintf("store at %s does not answer: %v (after %v)", e.addr, withoutAddress(e.last), e.after.Round(time.Millisecond))
}

// Unwrap returns both errors.
func (e *unansweredError) Unwrap() []error { return []error{e.last, e.ended} }

// withoutAddress returns what is left of err, that of a connection, without the address.
func withoutAddress(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

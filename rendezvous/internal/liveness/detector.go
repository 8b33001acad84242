// Package liveness is a failure detector: it finds out that a process on another machine has ended, long before a lease would run out.
//
// Every process has a [Detector], which listens. Monitor keeps a connection from one Detector to another, on which nothing is said.
// When one of the two processes ends, in whatever way, its kernel closes the connection, and the other one notices.
//
// That is a hint and no evidence: whatever is between the two may have cut the connection. A process is taken to have
// ended only if all of this holds:
//
//  1. There was a connection, on which both had proven that they hold the job's secret.
//  2. There is no new one. A process that lives calls again at once.
//  3. Its port refuses connections again and again: its machine answers, and says that nobody listens. Twice is enough if this process
//     had called it there, and that machine has closed the connection in good order, as a kernel does when a process ends. Otherwise a
//     firewall may have cut it, or may refuse all that this process calls: then it takes a grace period.
//
// So nothing is held against a process that is slow or stopped: its kernel accepts connections for it. Nor against one
// that is cut off, or whose machine has vanished: nothing is refused where nothing answers. Nor against one that cannot
// call, or cannot be called: it has no connection, or its port does not refuse. For all of them a lease has to run out. Only
// a process that refuses connections in the name of a machine that others run on could deceive a Detector.
//
// The secret is not sent, see package auth. A caller that does not prove to hold it is answered nothing, and package admission bounds
// what it costs. One that has proven it can still only be silent: a connection ends with the first byte.
package liveness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

const (
	graceStep    = 50 * time.Millisecond // between two calls in the grace period
	graceCalls   = 7                     // that are refused in it
	closedCalls  = 2                     // that are refused, if the connection was closed in good order
	grace        = (graceCalls - 1) * graceStep
	callLimit    = 3 * time.Second // of one call
	strangerTime = 2 * time.Second
	maxKey       = 64                    // bytes
	minPause     = 50 * time.Millisecond // between two calls that have failed, first and later
	maxPause     = 5 * time.Second
)

// LossTime is how long the machine at the other end of a connection may give no sign before the connection breaks.
const LossTime = network.KeepAliveLimit

// Config is what Listen needs.
type Config struct {
	Key     string                        // tells this process from others, also from one that comes after it; at most 64 bytes
	Host    string                        // what others call this machine; empty: that is not known
	Secret  []byte                        // that all processes hold
	Ended   func(key, addr string)        // the process with key, which would answer at addr, has ended; is called from any goroutine
	Changed func(key string, more int)    // the process with key has so many more connections to this one; may be nil; is called from any goroutine
	Control func(net.Conn)                // takes the connection of somebody who holds the secret and has called Dial; nil: there are none
	Log     func(msg string, args ...any) // is told of strangers; nil: nobody is
	// Dial connects to another process; nil: network.Dial.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Detector is one process's end of its connections. Its methods may be called from several goroutines.
type Detector struct {
	config   Config
	listener *admission.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	all      sync.WaitGroup

	secret    atomic.Pointer[[]byte]
	monitored sync.Map // keys of the processes to which this one has a connection, by address

	mu       sync.Mutex
	incoming map[string]int // connections from others, by their keys
}

// A hello is what a caller says first.
type hello struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port int    `json:"port"` // of From's own Detector
	Stay bool   `json:"stay"` // it is to be monitored

	Control bool `json:"control,omitempty"` // the connection is for Config.Control
}

// Listen makes a Detector and answers those who call.
func Listen(c Config) (*Detector, error) {
	listener, err := listenAt(c.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the other nodes: %w", err)
	}
	if c.Dial == nil {
		c.Dial = network.Dial
	}
	if c.Changed == nil {
		c.Changed = func(string, int) {}
	}
	d := &Detector{config: c, listener: admission.Listen(listener, admission.Config{Time: strangerTime, Log: c.Log}), incoming: make(map[string]int)}
	d.Use(c.Secret)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.all.Go(func() { d.listener.Serve(&d.all, d.answer) })
	return d, nil
}

// Port is where the Detector listens.
func (d *Detector) Port() int { return d.listener.Addr().(*net.TCPAddr).Port }

// Use makes secret the one that all processes hold, from now on.
func (d *Detector) Use(secret []byte) { d.secret.Store(&secret) }

// Close does what the end of the process would do.
func (d *Detector) Close() {
	d.cancel()
	_ = d.listener.Close() // it has nothing more to say
	d.all.Wait()
}

// Monitor keeps a connection to the process that answers to key at addr, until ctx ends, or until that process has ended: then it
// returns true. observe, unless it is nil, is called with every sign of that process, every call that has failed, and when that was.
func (d *Detector) Monitor(ctx context.Context, key, addr string, observe func(at time.Time, err error)) (ended bool) {
	if observe == nil {
		observe = func(time.Time, error) {}
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	wait := minPause
	for ctx.Err() == nil {
		begun := time.Now()
		conn, err := d.call(ctx, addr, hello{From: d.config.Key, To: key, Port: d.Port(), Stay: true})
		if err != nil {
			observe(begun, err)
			network.Pause(ctx, wait/2+rand.N(wait)) // those who were sent away together are not to come back together
			if wait = min(2*wait, maxPause); admission.HungUp(err) {
				wait = minPause // there was no room, for a moment
			}
			continue
		}
		wait = minPause
		d.monitored.Store(addr, key)
		observe(time.Now(), nil)
		err = await(ctx, conn)
		d.monitored.Delete(addr)
		observe(lastSign(err), nil)
		if d.ended(ctx, key, conn.RemoteAddr().String(), err) {
			return true
		}
	}
	return false
}

// Ping fails unless the process that answers at addr is the one with key. If that is monitored, it is known.
func (d *Detector) Ping(ctx context.Context, key, addr string) error {
	if known, _ := d.monitored.Load(addr); known == key {
		return nil
	}
	ctx, cancel := d.within(ctx)
	defer cancel()
	conn, err := d.call(ctx, addr, hello{From: d.config.Key, To: key})
	if err != nil {
		return err
	}
	return conn.Close()
}

// within ends with Close as well.
func (d *Detector) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

func (d *Detector) call(ctx context.Context, addr string, h hello) (net.Conn, error) {
	return connectTo(ctx, d.config.Dial, *d.secret.Load(), addr, h, nil)
}

// connectTo connects to a process that knows the secret. more is part of that; it may be nil.
func connectTo(
	ctx context.Context, dial admission.DialFunc, secret []byte, addr string, h hello,
	more func(context.Context, net.Conn) error,
) (net.Conn, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	conn, err := admission.Connect(ctx, dial, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err = auth.Dial(conn, secret, text); err == nil && more != nil {
		err = more(ctx, conn)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // err says it all
		return nil, err
	}
	network.KeepAlive(conn, true)
	return conn, nil
}

// ended finds out whether a process, which answered to key at addr until a connection broke with err, has ended. err is nil if
// that process had called this one.
func (d *Detector) ended(ctx context.Context, key, addr string, err error) bool {
	most := graceCalls
	if errors.Is(err, io.EOF) {
		most = closedCalls
	}
	begun := time.Now()
	for refused := 0; ; network.Pause(ctx, graceStep) {
		if d.Connected(key) || ctx.Err() != nil {
			return false
		}
		switch err := d.Ping(ctx, key, addr); {
		case errors.Is(err, syscall.ECONNREFUSED):
			if refused++; refused == most {
				return !d.Connected(key) && ctx.Err() == nil
			}
		case err == nil, time.Since(begun) > grace:
			return false
		default: // it may be about to end
			refused = 0
		}
	}
}

// HasEnded reports whether a process that has ended, as far as was found out before, still looks so.
func (d *Detector) HasEnded(ctx context.Context, key, addr string) bool {
	return !d.Connected(key) && errors.Is(d.Ping(ctx, key, addr), syscall.ECONNREFUSED)
}

// Connected reports whether the process with key has a connection to this one.
func (d *Detector) Connected(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.incoming[key] > 0
}

func (d *Detector) count(key string, more int) {
	d.mu.Lock()
	if d.incoming[key] += more; d.incoming[key] == 0 {
		delete(d.incoming, key)
	}
	d.mu.Unlock()
	d.config.Changed(key, more)
}

// lastSign is when the machine at the other end of a connection, which has just broken with err, was there at the latest.
func lastSign(err error) time.Time {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) {
		return time.Now().Add(-LossTime)
	}
	return time.Now()
}

// await returns when the connection has broken, or ctx has ended, and closes it. It returns how the connection has ended.
func await(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err := conn.Read(make([]byte, 1)) // even a byte is the end
	_ = conn.Close()
	return err
}

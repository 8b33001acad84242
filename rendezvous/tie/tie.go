// Package tie finds out that a process on another machine has ended, long before a lease would run out.
//
// Every process has an [End], which listens. Hold keeps a connection from one End to another, on which nothing is said.
// When one of the two processes ends, in whatever way, its kernel closes the connection, and the other one hears of it.
//
// That is a hint and no evidence: whatever is between the two may have cut the connection. A process is taken to have
// ended only if all of this holds:
//
//  1. There was a connection, on which both had proven that they hold the job's secret.
//  2. There is no new one within a grace. Who lives calls again at once.
//  3. At the end of the grace its port refuses connections: its machine answers, and says that nobody listens.
//
// So nothing is held against a process that is slow or stopped: its kernel accepts connections for it. Nor against one
// that is cut off, or whose machine has vanished: nothing is refused where nothing answers. Nor against one that cannot
// call, or cannot be called: it has no tie, or its port does not refuse. For all of them a lease has to run out. Only who
// begins to refuse connections in the name of a machine that others run on could deceive an End.
//
// The secret is not sent, see package auth. Who does not prove to hold it is answered nothing, and package admission bounds what
// they cost. Who has proven it can still only be silent: a tie ends with the first byte.
package tie

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/keepalive"
)

const (
	grace        = 300 * time.Millisecond
	graceStep    = 100 * time.Millisecond // between two calls in it
	callLimit    = 3 * time.Second        // of one call
	strangerTime = 2 * time.Second
	maxKey       = 64                    // bytes
	minPause     = 50 * time.Millisecond // between two calls that have failed, first and later
	maxPause     = 5 * time.Second
)

// Config is what Listen needs.
type Config struct {
	Key    string                        // tells this process from others, also from one that comes after it; at most 64 bytes
	Host   string                        // what others call this machine; empty: that is not known
	Secret []byte                        // that all processes hold
	Ended  func(key, addr string)        // the process with key, which would answer at addr, has ended; is called from any goroutine
	Tied   func()                        // Tied says something else than before; may be nil; is called from any goroutine
	Log    func(msg string, args ...any) // is told of strangers; nil: nobody is
	// Dial connects to another process; nil: as package net does.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// An End is one process's end of its ties. Its methods may be called from several goroutines.
type End struct {
	config   Config
	listener *admission.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu     sync.Mutex
	secret []byte
	ties   map[string]int    // that others hold to this process, by their keys
	held   map[string]string // keys of the processes to which this one holds a tie, by address
}

// A hello is what a caller says first.
type hello struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port int    `json:"port"` // of From's own End
	Stay bool   `json:"stay"` // it is to be a tie
}

// Listen makes an End and answers those who call.
func Listen(c Config) (*End, error) {
	listener, err := listenAt(c.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the other nodes: %w", err)
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Tied == nil {
		c.Tied = func() {}
	}
	e := &End{config: c, listener: admission.Listen(listener, admission.Config{Time: strangerTime, Log: c.Log}), secret: c.Secret, ties: make(map[string]int), held: make(map[string]string)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.all.Go(e.listen)
	return e, nil
}

// Port is where the End listens.
func (e *End) Port() int { return e.listener.Addr().(*net.TCPAddr).Port }

// Use makes secret the one that all processes hold, from now on.
func (e *End) Use(secret []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secret = secret
}

// Close does what the end of the process would do.
func (e *End) Close() {
	e.cancel()
	_ = e.listener.Close() // it has nothing more to say
	e.all.Wait()
}

// Hold keeps a tie to the process that answers to key at addr, until ctx ends, or until that process has ended: then it
// returns true. heard, unless it is nil, is told of every sign of that process, and of every call that has failed, and when that was.
func (e *End) Hold(ctx context.Context, key, addr string, heard func(at time.Time, err error)) (ended bool) {
	if heard == nil {
		heard = func(time.Time, error) {}
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	wait := minPause
	for ctx.Err() == nil {
		begun := time.Now()
		conn, err := e.call(ctx, addr, hello{From: e.config.Key, To: key, Port: e.Port(), Stay: true})
		if err != nil {
			heard(begun, err)
			pause(ctx, wait/2+rand.N(wait)) // those who were sent away together are not to come back together
			if wait = min(2*wait, maxPause); admission.HungUp(err) {
				wait = minPause // there was no room, for a moment
			}
			continue
		}
		wait = minPause
		e.set(addr, key)
		heard(time.Now(), nil)
		err = await(ctx, conn)
		e.set(addr, "")
		heard(lastSign(err), nil)
		if e.ended(ctx, key, conn.RemoteAddr().String()) {
			return true
		}
	}
	return false
}

// Reach fails unless the process that answers at addr is the one with key. If a tie is held to it, that is known.
func (e *End) Reach(ctx context.Context, key, addr string) error {
	if e.holds(addr, key) {
		return nil
	}
	ctx, cancel := e.within(ctx)
	defer cancel()
	conn, err := e.call(ctx, addr, hello{From: e.config.Key, To: key})
	if err != nil {
		return err
	}
	return conn.Close()
}

// within ends with Close as well.
func (e *End) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

func (e *End) call(ctx context.Context, addr string, h hello) (net.Conn, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	conn, err := admission.Connect(ctx, e.config.Dial, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	_, err = auth.Dial(conn, e.token(), text)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close() // err says it all
		return nil, err
	}
	keepalive.Set(conn, true)
	return conn, nil
}

// ended finds out whether a process, which answered to key at addr until a tie broke, has ended.
func (e *End) ended(ctx context.Context, key, addr string) bool {
	refused := false
	for limit := time.Now().Add(grace); time.Now().Before(limit); pause(ctx, graceStep) {
		if e.Tied(key) || ctx.Err() != nil {
			return false
		}
		err := e.Reach(ctx, key, addr)
		if err == nil {
			return false
		}
		refused = errors.Is(err, syscall.ECONNREFUSED)
	}
	return refused && !e.Tied(key) && ctx.Err() == nil
}

// HasEnded reports whether a process that has ended, as far as was found out before, still looks so.
func (e *End) HasEnded(ctx context.Context, key, addr string) bool {
	return !e.Tied(key) && errors.Is(e.Reach(ctx, key, addr), syscall.ECONNREFUSED)
}

func (e *End) token() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.secret
}

// Tied reports whether the process with key holds a tie to this one.
func (e *End) Tied(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ties[key] > 0
}

func (e *End) holds(addr, key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.held[addr] == key
}

// set notes to whom a tie is held; empty: to nobody.
func (e *End) set(addr, key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[addr] = key; key == "" {
		delete(e.held, addr)
	}
}

func (e *End) count(key string, more int) {
	e.mu.Lock()
	if e.ties[key] += more; e.ties[key] == 0 {
		delete(e.ties, key)
	}
	e.mu.Unlock()
	e.config.Tied()
}

// await returns when the connection has broken, or ctx has ended, and closes it. It returns how the connection has ended.
func await(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, err := conn.Read(make([]byte, 1)) // even a byte is the end
	_ = conn.Close()
	return err
}

// pause returns early if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

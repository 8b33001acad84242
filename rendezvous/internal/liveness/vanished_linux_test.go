package liveness

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// A connection to a machine that has vanished breaks at both ends, so that nobody is said to be reached by it. Nobody has ended for that.
func TestAVanishedMachine(t *testing.T) {
	t.Parallel()
	w := hosttest.New(t, 2)
	on := func(i int, key string) (p *process) {
		w.Host(i).Do(func() {
			p = start(t, key, func(c *Config) {
				c.Host = w.Host(i).Addr
				c.Dial = func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
					w.Host(i).Do(func() { conn, err = new(net.Dialer).DialContext(ctx, network, addr) })
					return conn, err
				}
			})
		})
		return p
	}
	a, b := on(0, "a"), on(1, "b")
	var last atomic.Pointer[time.Time] // sign of b
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool, 1)
	var all sync.WaitGroup
	all.Go(func() {
		ended <- a.Monitor(ctx, b.key, b.addr(), func(at time.Time, err error) {
			if err == nil {
				last.Store(&at)
			}
		})
	})
	defer func() { cancel(); all.Wait() }()
	until(t, func() bool { return a.monitors(b) })
	w.Cut(1)
	cut := time.Now()
	until(t, func() bool { return !a.monitors(b) && !b.Connected("a") })
	took := time.Since(cut)
	until(t, func() bool { return !last.Load().After(cut.Add(took - 25*time.Second)) })
	if took > 45*time.Second {
		t.Errorf("it took %v", took)
	}
	select {
	case <-ended:
		t.Error("b is said to have ended")
	case key := <-b.ended:
		t.Errorf("%s is said to have ended", key)
	default:
	}
}

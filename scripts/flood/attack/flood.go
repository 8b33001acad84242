// Package attack attacks ports as a stranger without the secret would: with connections that prove nothing, and that are opened
// again as soon as they are dropped. Tests and scripts/flood use it against jobs.
package attack

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// An Attack is what a stranger does with a connection, until it returns. When ctx ends, reads and writes fail.
type Attack func(ctx context.Context, c net.Conn)

// Attacks are all attacks, by name.
var Attacks = map[string]Attack{
	"silent":   func(_ context.Context, c net.Conn) { stayOpen(c) },
	"slow":     slow,
	"unproven": func(_ context.Context, c net.Conn) { say(c, opening); stayOpen(c) },
	"garbage":  garbage,
	"scan":     func(context.Context, net.Conn) {},
}

// opening is all of gorun's handshake except the proof.
var opening = "gorun1\r\n" + strings.Repeat("n", 32) + "\x00\x05hello"

// stayOpen reads until the other end hangs up. Its buffer is small, as there are many strangers.
func stayOpen(c net.Conn) {
	for b := make([]byte, 16); ; {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

func say(c net.Conn, text string) { _, _ = io.WriteString(c, text) }

// slow says a byte a second.
func slow(ctx context.Context, c net.Conn) {
	for _, b := range []byte(opening) {
		if _, err := c.Write([]byte{b}); err != nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
	stayOpen(c)
}

func garbage(_ context.Context, c net.Conn) {
	b := make([]byte, 1000)
	_, _ = rand.Read(b) // never fails
	_, _ = c.Write(b)
	stayOpen(c)
}

// A Port is where somebody listens.
type Port struct{ Network, Address string }

// A Flood is a set of strangers that attack ports.
type Flood struct {
	Calls atomic.Int64 // connections that have been made
	Held  atomic.Int64 // of them, those that are open

	attack Attack
	first  int // number of the first stranger at a port, of whom other processes send some
	pause  time.Duration
	ctx    context.Context
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// Start returns a flood without strangers. A stranger that was dropped comes back after a pause.
func Start(attack Attack, pause time.Duration) *Flood {
	f := &Flood{attack: attack, pause: pause}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// At sends strangers to a port until nobody listens there or the flood is stopped.
func (f *Flood) At(p Port, strangers int) {
	for i := range strangers {
		f.all.Go(func() { f.stranger(p, f.first+i) })
	}
}

// Stop ends the flood.
func (f *Flood) Stop() {
	f.stop()
	f.all.Wait()
}

func (f *Flood) stranger(p Port, number int) {
	d := net.Dialer{KeepAlive: -1}
	if strings.HasPrefix(p.Address, "127.") { // from many addresses
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1+byte(number>>16), byte(number>>8), 1+byte(number)/2)}
	}
	for f.ctx.Err() == nil {
		c, err := d.DialContext(f.ctx, p.Network, p.Address)
		switch {
		case err == nil:
			f.Calls.Add(1)
			f.Held.Add(1)
			done := context.AfterFunc(f.ctx, func() { _ = c.Close() })
			f.attack(f.ctx, c)
			_ = c.Close()
			done()
			f.Held.Add(-1)
		case errors.Is(err, syscall.ECONNREFUSED): // nobody listens any more
			return
		}
		wait := f.pause
		if err != nil { // there is no room
			wait = max(wait, 10*time.Millisecond)
		}
		select {
		case <-time.After(wait):
		case <-f.ctx.Done():
		}
	}
}

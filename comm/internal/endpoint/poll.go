package endpoint

import (
	"io"
	"net"
	"runtime"
	"time"

	"github.com/gorun/gorun/comm/internal/epoll"
	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/comm/transport"
)

// Streams that never wait have no goroutines. Whoever waits for an operation polls them: one goroutine at a time, for as
// long as something comes and a moment longer; the others stand in line. Then it is watch that waits for them all.

const (
	// readAhead is how much is read before it is known what it is.
	readAhead = 32 << 10
	// directLimit is from how many bytes on a payload is read straight to where it goes.
	directLimit = 8 << 10
	// spinTime is how long is polled in vain: longer than it takes a peer to be woken and answer, or two ranks that have slept
	// once would wake each other for every message.
	spinTime = 200 * time.Microsecond
	// crowdedSpin is spinTime where who polls lets others run in between, or sleeps.
	crowdedSpin = time.Millisecond
	// crowdedTurns is after how many turns in vain it sleeps, if to look takes a call of the system: who only yields may be run
	// again before the one that is waited for, again and again, or only after all that do not yield.
	crowdedTurns = 32
	// shareTime is after how long in vain other goroutines get their turns: to ask the scheduler wakes another thread.
	shareTime = 50 * time.Microsecond
	// windowTurns is how many turns in vain it takes to look at the clock where none takes a call of the system.
	windowTurns = 16
	// otherTurns is in how many turns another stream than that of the peer that is waited for gets one.
	otherTurns = 4
)

// start is when the program began.
var start = time.Now()

// pollable is conn as a stream that is polled, or nil if that cannot be had. The mutex is held.
func (e *Endpoint) pollable(p *peer, conn net.Conn) transport.Stream {
	c, ok := conn.(transport.Pollable)
	if !ok || !e.startWatch() {
		return nil
	}
	s, err := c.Stream()
	if err != nil {
		return nil
	}
	e.streams = append(e.streams, p)
	return s
}

// write lets what is queued for p be written: at once, as far as there is room, or by p's writer. The mutex is held.
func (e *Endpoint) write(p *peer) {
	if p.stream == nil {
		p.poke()
		return
	}
	e.push(p)
	if p.out.Len() > 0 && !p.broken && p.armed {
		e.arm(p)
	}
}

// push writes a piece of what is queued for p, and says whether there was room for any. The mutex is held.
func (e *Endpoint) push(p *peer) bool {
	if p.out.Len() == 0 || p.broken {
		return false
	}
	v, _ := p.out.Next(pieceLimit + wire.HeaderSize)
	n, err := p.stream.TryWrite(v)
	p.wrote(n)
	if err != nil {
		e.cannotWrite(p, err)
	}
	return n > 0
}

// pull reads a piece of what p has sent, and says whether there was any. The mutex is held.
func (e *Endpoint) pull(p *peer) bool {
	if p.ended {
		return false
	}
	b, quick := e.piece, p.window != nil
	straight := p.in.into != nil && p.in.rest > 0 && (quick || p.in.rest >= directLimit)
	switch {
	case straight:
		b = p.in.into[:min(p.in.rest, pieceLimit)]
	case p.in.rest == 0 && (quick || p.in.long): // what is long is likely to be followed by its like
		b = b[:wire.HeaderSize-p.in.have]
	case quick:
		b = b[:min(p.in.rest, len(b))]
	}
	n, err := p.stream.TryRead(b)
	var wrong error
	if straight {
		wrong = e.took(p, n)
	} else {
		wrong = e.feed(p, b[:n])
	}
	if err == nil && wrong != nil {
		err = protocolError{wrong}
	}
	if err == nil && p.left {
		err = io.EOF // so that the stream ends, for which the peer waits
	}
	e.finished(p, err)
	return n > 0
}

// finished ends reading from p if err is why. The mutex is held.
func (e *Endpoint) finished(p *peer, err error) {
	if err != nil {
		p.ended = true
		e.wg.Go(func() { e.broke(p, unexpected(err)) })
	}
}

// move writes to and reads from p, a piece each, and says whether anything has moved. The mutex is held.
func (e *Endpoint) move(p *peer) bool {
	pushed := e.push(p)
	return e.pull(p) || pushed
}

// poll moves bytes until op has ended or nothing has come for a while, unless somebody does already. The mutex is held, and
// let go now and then.
func (e *Endpoint) poll(op *Op) {
	isPolled := op.over == nil && (op.peer < 0 || e.peers[op.peer].stream != nil)
	if e.polling || len(e.streams) == 0 || !isPolled {
		return
	}
	e.polling = true
	e.polls++
	spin := spinTime
	if e.opt.Crowded {
		spin = crowdedSpin
	}
	var vain, shared time.Duration // since when, as time goes since start; 0: not at all
	for turn, yields := 0, 0; !op.finished() && len(e.streams) > 0; turn++ {
		other := e.streams[turn/otherTurns%len(e.streams)]
		if e.turn(op, other, turn%otherTurns == otherTurns-1) {
			vain, yields = 0, 0
			continue
		}
		if op.finished() {
			break
		}
		if other.window != nil && turn%windowTurns > 0 && !e.woken {
			continue
		}
		now := time.Since(start)
		if vain == 0 {
			vain, shared = now, now
		} else if now-vain > spin {
			break
		}
		if yields == vainTurns {
			e.acknowledge(op)
		}
		share := e.woken || e.opt.Shared && e.opt.Crowded || now-shared > shareTime && !e.opt.Crowded
		if share {
			shared = now
		}
		e.woken = false
		if yields++; yields > crowdedTurns && e.opt.Crowded && !share && other.window == nil {
			e.sleep(spin)
			yields = 0
			continue
		}
		e.mu.Unlock()
		if share {
			runtime.Gosched()
		}
		if e.opt.Crowded {
			epoll.Yield()
		}
		e.mu.Lock()
	}
	e.polling = false
	e.passTurn()
}

// turn moves a piece to and from the peer that op waits for, and says whether there was any; it does so for other if op waits
// for nobody in particular, or if that is to have its turn, too. The mutex is held.
func (e *Endpoint) turn(op *Op, other *peer, both bool) bool {
	if op.peer < 0 {
		return e.move(other)
	}
	p := e.peers[op.peer]
	moved := p.stream != nil && e.move(p)
	if both && p != other {
		e.move(other)
	}
	return moved
}

// sleep waits, with the thread, until a stream is ready, at most for limit, and moves what there is. The mutex is held, and let
// go meanwhile.
func (e *Endpoint) sleep(limit time.Duration) {
	e.awaited.Clear()
	for _, p := range e.streams {
		if !p.ended {
			e.awaited.Add(p.stream.Descriptor(), p.rank, p.stream.Arm(p.out.Len() > 0 && !p.broken))
		}
	}
	e.mu.Unlock()
	ready := e.awaited.Wait(limit)
	e.mu.Lock()
	for _, rank := range ready {
		if p := e.peers[rank]; p.stream != nil {
			e.move(p)
		}
	}
}

package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/matching"
	"github.com/gorun/gorun/comm/internal/transport"
)

// A stall is an operation that somebody has been waiting for long enough to ask why. Guarded by the mutex.
type stall struct {
	op *operation
	diagnosis.Stall
}

// stall records that op has been waited for long enough to ask why, until close.
func (op *Op) stall(since time.Time, timeout time.Duration) *stall {
	in := op.lock()
	defer in.unlock()
	s := &stall{in, diagnosis.NewStall(since, timeout)}
	in.comm.ep.stalls = append(in.comm.ep.stalls, s)
	if in.comm.askers == nil {
		in.comm.askers = map[int]uint64{}
	}
	return s
}

func (s *stall) close() {
	if s == nil {
		return
	}
	e := s.op.comm.ep.api().lock()
	defer e.unlock()
	e.stalls = slices.DeleteFunc(e.stalls, func(other *stall) bool { return other == s })
	if !slices.ContainsFunc(e.stalls, func(other *stall) bool { return other.op.comm == s.op.comm }) {
		s.op.comm.askers = nil
	}
}

// ask asks the peer why, and returns how long to wait before the next time: 0 once the operation's time is up.
func (s *stall) ask() time.Duration {
	now := time.Now()
	if s.IsTimeUp(now) {
		return 0
	}
	e := s.op.comm.ep.api().lock()
	peer, unanswered, state := s.op.awaited(), s.IsUnanswered(), ""
	if unanswered {
		state = e.diagnose(e.peers[peer])
	}
	if peer >= 0 && peer != e.rank {
		s.op.comm.ask(peer, s.op.seq, 0)
		s.Asked(now)
	}
	e.unlock()
	if unanswered && e.opt.State != nil {
		state = cmp.Or(e.opt.State(peer), state)
	}
	e.api().lock()
	op := s.op.awaits()
	suspect, pause := s.Warning(op, state, now), s.NextPause(now)
	e.unlock()
	if suspect != nil {
		e.opt.Log.Warn("an operation takes long", "operation", op.In, "waited", now.Sub(s.Since()), "rank", suspect.Rank, "reason", suspect.String())
	}
	return pause
}

// diagnose says why p may not answer, or nothing: it is not connected yet, or what its stream is suspected of.
func (e *state) diagnose(p *peer) string {
	if p.state == stateIdle {
		return "it has accepted no connection: it is still joining, has stopped, or is cut off"
	}
	if d, ok := p.link.Stream.(transport.Diagnoser); ok {
		p.suspicion = d.Diagnose()
	}
	return p.suspicion
}

// lastWait says for which rank p was waiting, by its own report, before it was gone; empty: it was not. p may have ended because of that
// rank.
func (e *state) lastWait(p *peer) string {
	for _, s := range e.stalls {
		if suspect := s.Suspect(time.Now()); s.op.awaited() == p.rank && suspect != nil && suspect.Rank >= 0 && suspect.Rank != e.rank {
			return fmt.Sprintf("; it waited for rank %d, which %s", suspect.Rank, suspect)
		}
	}
	return ""
}

// awaited is the rank that op needs, or AnySource.
func (op *operation) awaited() int {
	if op.peer == matching.AnySource {
		return op.source
	}
	return op.peer
}

// awaits describes op for reports to other ranks.
func (op *operation) awaits() diagnosis.Operation {
	wait := diagnosis.Wait{Rank: op.comm.ep.rank, For: op.awaited(), In: op.name()}
	return diagnosis.Operation{Wait: wait, Seq: op.seq, IsSend: op.send}
}

// name is what op is called in reports and errors.
func (op *operation) name() string {
	if op.seq > 0 {
		return nameOf(op.call, op.seq)
	}
	return nameOf(op.call, op.number) + op.tags()
}

// tags says which tag op has, unless that is 0 or any. If op is a receive that nothing matches, it also says which other tag a message has
// that may be meant for it.
func (op *operation) tags() string {
	if !op.send && op.source < 0 && op.tag >= 0 {
		if m, _ := op.comm.queues.Message(matching.Pattern{Source: op.peer, Tag: matching.AnyTag}, false); m != nil {
			return fmt.Sprintf(" (tag %d; an unreceived message from rank %d has tag %d)", op.tag, m.Source, m.Tag)
		}
	}
	if op.tag <= 0 {
		return ""
	}
	return fmt.Sprintf(" (tag %d)", op.tag)
}

// without returns the failure f, by which rank f.Rank is gone, as the error of op. A receive that needs that rank says what has not come.
func (op *operation) without(f *diagnosis.Failure) *diagnosis.Failure {
	g := *f
	switch {
	case op.send, op.seq > 0, op.peer >= 0 && op.peer != f.Rank, f.Remote:
	case op.source < 0 && op.tags() != "":
		g.Text += fmt.Sprintf(", and has not sent what %s waits for", op.name())
	case op.source >= 0 && f.Kind == diagnosis.Closed:
		g.Text += ", and has not sent the message that it had announced: nobody there has waited for that Send"
	}
	return &g
}

func nameOf(c call.Call, seq uint64) string {
	return fmt.Sprintf("%v #%d", c.Kind, seq)
}

// monitorTag marks the questions of Monitor: who is asked need not ask the others itself.
const monitorTag = 1

// A monitor is a Monitor under way. Guarded by the mutex, except for done.
type monitor struct {
	diagnosis.Missing
	done chan struct{} // closed when nobody is missing
}

// reported takes in r, in which rank says what it does.
func (m *monitor) reported(rank int, r *diagnosis.WaitReport) {
	missing := len(m.Ranks) > 0
	if m.Reported(rank, r); missing && len(m.Ranks) == 0 {
		close(m.done)
	}
}

// Monitor asks the other members whether they have begun collective seq, which this rank has begun. It asks those that have not again,
// at intervals of every. If some have not by ctx's deadline, and this rank still waits in the collective, it fails the communicator with
// a failure that names them. If another member asks already, Monitor does nothing.
func (c *Communicator) Monitor(ctx context.Context, seq uint64, every time.Duration) {
	in := c.lock()
	e, isMonitored := in.ep, in.monitored == seq
	in.unlock()
	if isMonitored {
		return
	}
	others := slices.DeleteFunc(slices.Clone(c.members), func(rank int) bool { return rank == e.rank })
	m := &monitor{Missing: diagnosis.Missing{Seq: seq, Ranks: others}, done: make(chan struct{})}
	again := time.NewTicker(every)
	defer again.Stop()
	for ctx.Err() == nil {
		in = c.lock()
		in.monitor = m
		for _, rank := range m.Ranks {
			in.ask(rank, seq, monitorTag)
		}
		in.unlock()
		select {
		case <-again.C:
		case <-ctx.Done():
		case <-m.done: // they are all there, and nobody need fail
			return
		case <-e.ctx.Done():
			return
		}
	}
	in = c.lock()
	defer in.unlock()
	waits := slices.ContainsFunc(in.ops, func(op *operation) bool { return op.seq == seq })
	if r := c.collectives.At(seq); errors.Is(ctx.Err(), context.DeadlineExceeded) && len(m.Ranks) > 0 && r != nil && waits {
		in.fail(m.Failure(nameOf(r.Call, seq), time.Since(r.Began)), -1)
	}
}

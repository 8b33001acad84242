package endpoint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/transport"
)

// A stall is an operation that somebody has been waiting for long enough to ask why. Guarded by the endpoint's mutex.
type stall struct {
	op *Op
	diagnosis.Stall
}

// stall makes op a stall, which close ends; there need not be one.
func (op *Op) stall(since time.Time, timeout time.Duration) *stall {
	e := op.lane.ep
	s := &stall{op, diagnosis.NewStall(since, timeout)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stalls = append(e.stalls, s)
	if op.lane.askers == nil {
		op.lane.askers = map[int]uint64{}
	}
	return s
}

func (s *stall) close() {
	if s == nil {
		return
	}
	e := s.op.lane.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stalls = slices.DeleteFunc(e.stalls, func(other *stall) bool { return other == s })
	if !slices.ContainsFunc(e.stalls, func(other *stall) bool { return other.op.lane == s.op.lane }) {
		s.op.lane.askers = nil
	}
}

// ask asks the peer why, and returns how long to wait before the next time: 0 once the operation's time is up.
func (s *stall) ask() time.Duration {
	now, e := time.Now(), s.op.lane.ep
	if s.IsTimeUp(now) {
		return 0
	}
	e.mu.Lock()
	peer, unanswered, state := s.op.awaited(), s.IsUnanswered(), ""
	if unanswered {
		state = e.peers[peer].diagnose()
	}
	if peer >= 0 && peer != e.rank {
		s.op.lane.ask(peer, s.op.seq, 0)
		s.Asked(now)
	}
	e.mu.Unlock()
	if unanswered && e.opt.State != nil {
		state = cmp.Or(e.opt.State(peer), state)
	}
	e.mu.Lock()
	op := s.op.awaits()
	suspect, pause := s.Warning(op, state, now), s.NextPause(now)
	e.mu.Unlock()
	if suspect != nil {
		e.opt.Log.Warn("an operation takes long", "operation", op.In, "waited", now.Sub(s.Since()), "rank", suspect.Rank, "reason", suspect.String())
	}
	return pause
}

// diagnose is what p's stream is suspected of, or nothing.
func (p *peer) diagnose() string {
	if d, ok := p.link.Stream.(transport.Diagnoser); ok {
		p.suspect = d.Diagnose()
	}
	return p.suspect
}

// lastWait is whom p, which is gone, has said to wait for, or nothing: its end may be no more than a consequence.
func (e *Endpoint) lastWait(p *peer) string {
	for _, s := range e.stalls {
		if suspect := s.Suspect(time.Now()); s.op.awaited() == p.rank && suspect != nil && suspect.Rank >= 0 && suspect.Rank != e.rank {
			return fmt.Sprintf("; it waited for rank %d, which %s", suspect.Rank, suspect)
		}
	}
	return ""
}

// failure is why the operation fails now that its time is up.
func (s *stall) failure() *diagnosis.Failure {
	e := s.op.lane.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	return s.Failure(s.op.awaits(), time.Now())
}

// awaited is the rank that op needs, or AnySource.
func (op *Op) awaited() int {
	if op.peer == AnySource {
		return op.source
	}
	return op.peer
}

// awaits is op as who waits for it tells others.
func (op *Op) awaits() diagnosis.Operation {
	seq := op.seq
	if seq == 0 {
		seq = op.number
	}
	e := op.lane.ep
	wait := diagnosis.Wait{Rank: e.rank, For: op.awaited(), In: e.name(op.call, seq)}
	return diagnosis.Operation{Wait: wait, Seq: op.seq, IsSend: op.send}
}

func (e *Endpoint) name(c call.Call, seq uint64) string {
	return fmt.Sprintf("%s #%d", e.opt.Name(c), seq)
}

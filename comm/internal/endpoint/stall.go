package endpoint

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/transport"
)

// Ranks that wait too long ask why. The question goes to the rank that is waited for, and its reader answers, whatever its
// program does: what the rank is in, what it called as the collective in question, and, if it waits and asks itself, whom
// it waits for in turn and who is to blame as far as it knows; it answers again when it knows more. So the reason for a wait
// travels from rank to rank against the chain of waits, over streams that are there already. Calls that differ fail the lane as soon
// as they are known; all else is for the error of whoever's time is up first.

const (
	// firstPause is how long an operation is waited for before the first question.
	firstPause = time.Second
	// warnAfter is how long it is waited for before the log tells, if its time is not nearly up by then.
	warnAfter = 10 * time.Second
	// longestChain is the most waits, one for the next, that are told.
	longestChain = 64
)

// longestPause is the time between questions, from which the reason for a wait of timeout comes a long way.
func longestPause(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return warnAfter
	}
	return min(max(timeout/32, time.Millisecond), warnAfter)
}

// A Wait is one rank's for another.
type Wait struct {
	Rank int    `json:"rank"`
	For  int    `json:"for"`
	In   string `json:"in"` // such as "AllReduce #17"
}

// A blame says which rank holds up the others, and by what.
type blame struct {
	Rank int `json:"rank"`
	doing
}

// A stall is an operation that somebody has been waiting for long enough to ask why. Guarded by the endpoint's mutex.
type stall struct {
	op      *Op
	since   time.Time
	timeout time.Duration
	pause   time.Duration // before the next question
	asked   time.Time     // the oldest question that has not been answered; zero: there is none
	state   string        // of the peer that has not, or of the way to it, if anything is known
	heard   *report       // the last answer
	when    time.Time     // it came
	told    time.Duration // how long it had been waited for when the log was told
}

// stall makes op a stall, which close ends; there need not be one.
func (op *Op) stall(since time.Time, timeout time.Duration) *stall {
	e := op.lane.ep
	s := &stall{op: op, since: since, timeout: timeout, pause: firstPause}
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
	waited := time.Since(s.since)
	if s.timeout > 0 && waited >= s.timeout {
		return 0
	}
	e := s.op.lane.ep
	e.mu.Lock()
	peer := s.op.awaited()
	missed := !s.asked.IsZero()
	suspect := ""
	if missed {
		suspect = e.peers[peer].diagnose()
	}
	if peer >= 0 && peer != e.rank {
		s.op.lane.ask(peer, s.op.seq, 0)
		if !missed {
			s.asked = time.Now()
		}
	}
	e.mu.Unlock()
	state := ""
	if missed && e.opt.State != nil {
		state = e.opt.State(peer)
	}
	s.warn(waited, cmp.Or(state, suspect))
	s.pause = min(2*s.pause, longestPause(s.timeout))
	if s.timeout > 0 {
		s.pause = min(s.pause, s.timeout-waited)
	}
	return s.pause
}

// diagnose is what p's stream is suspected of, or nothing.
func (p *peer) diagnose() string {
	if d, ok := p.stream.(transport.Diagnoser); ok {
		p.suspect = d.Diagnose()
	}
	return p.suspect
}

// lastWords is whom p, which is gone, has said to wait for, or nothing: its end may be no more than a consequence.
func (e *Endpoint) lastWords(p *peer) string {
	for _, s := range e.stalls {
		if s.op.awaited() == p.rank && s.heard != nil && s.heard.Blame != nil && s.heard.Blame.Rank >= 0 && s.heard.Blame.Rank != e.rank {
			return fmt.Sprintf("; it waited for rank %d, which %s", s.heard.Blame.Rank, s.heard.Blame.aged(time.Since(s.when)))
		}
	}
	return ""
}

// warn tells the log whom the wait is for, if it is time to. state is what the peer is in if it does not answer.
func (s *stall) warn(waited time.Duration, state string) {
	e := s.op.lane.ep
	e.mu.Lock()
	s.state = state
	name, b := s.op.name(), s.warning(waited)
	e.mu.Unlock()
	if b != nil {
		e.opt.Log.Warn("an operation takes long", "operation", name, "waited", waited, "rank", b.Rank, "reason", b.String())
	}
}

// patience is how long an operation is waited for before the log tells, and a question before its peer counts as silent.
func (s *stall) patience() time.Duration {
	if s.timeout > 0 {
		return min(warnAfter, s.timeout/4)
	}
	return warnAfter
}

// isSilent says whether the peer is known to be. The mutex is held.
func (s *stall) isSilent() bool { return !s.asked.IsZero() && time.Since(s.asked) >= s.patience() }

// warning is whom the log has to blame, if it is time again and nobody else is nearer to the reason. The mutex is held.
func (s *stall) warning(waited time.Duration) *blame {
	if waited < max(s.patience(), 2*s.told) || s.heard == nil && !s.isSilent() {
		return nil
	}
	s.told = waited
	chain, b := s.reason()
	if b == nil { // a circle, of which the lowest rank tells
		low := slices.MinFunc(chain, func(a, b Wait) int { return a.Rank - b.Rank })
		if low.Rank != s.op.lane.ep.rank {
			return nil
		}
		return &blame{low.For, doing{Text: circle(chain)}}
	}
	if len(chain) > 1 {
		return nil
	}
	return b
}

// verdict is why the operation fails now that its time is up.
func (s *stall) verdict() *Failure {
	e := s.op.lane.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	chain, b := s.reason()
	if b == nil {
		return &Failure{Kind: Deadlocked, Rank: chain[0].Rank, Text: circle(chain), Waits: chain, Late: true, Err: ErrTimeout}
	}
	return &Failure{Kind: PeerFailed, Rank: b.Rank, Text: b.String(), Late: true, Err: ErrTimeout}
}

// reason is how the wait leads from one rank to the next, and who at the end is to blame: nil if it leads in a circle,
// which is then all that is returned. The mutex is held.
func (s *stall) reason() ([]Wait, *blame) {
	chain, r := []Wait{s.wait()}, s.heard
	peer := chain[0].For
	switch {
	case peer < 0:
		return chain, &blame{peer, doing{Text: "nobody has sent what " + s.op.name() + " waits for"}}
	case peer == s.op.lane.ep.rank:
		return chain, nil
	case s.isSilent():
		return chain, &blame{peer, doing{Text: "does not answer: " + cmp.Or(s.state, "it has stopped, or is cut off")}}
	case r == nil:
		return chain, &blame{peer, doing{Text: "has not answered yet"}}
	case len(r.Chain) == 0:
		now := r.Doing.aged(time.Since(s.when))
		now.Text = s.op.missing(r) + now.Text
		return chain, &blame{peer, now}
	}
	for _, w := range r.Chain {
		if slices.ContainsFunc(chain, func(known Wait) bool { return known.Rank == w.Rank }) {
			break
		}
		chain = append(chain, w)
	}
	last := chain[len(chain)-1].For
	if i := slices.IndexFunc(chain, func(w Wait) bool { return w.Rank == last }); i >= 0 {
		return chain[i:], nil
	}
	if r.Blame == nil { // the chain has changed while it was told
		return chain, &blame{last, doing{Text: "is waited for"}}
	}
	return chain, &blame{r.Blame.Rank, r.Blame.aged(time.Since(s.when))}
}

// wait is whose s is for whom. The mutex is held.
func (s *stall) wait() Wait {
	return Wait{Rank: s.op.lane.ep.rank, For: s.op.awaited(), In: s.op.name()}
}

// awaited is the rank that op needs, or AnySource.
func (op *Op) awaited() int {
	if op.peer == AnySource {
		return op.source
	}
	return op.peer
}

// missing says what op lacks of its peer, which has reported r.
func (op *Op) missing(r *report) string {
	lack := "has not sent what %s waits for: "
	switch {
	case op.seq > r.Seq:
		lack = "has not called %s: "
	case op.seq > 0:
		lack = "is late in %s: "
	case op.send:
		lack = "has not received what %s offers: "
	}
	return fmt.Sprintf(lack, op.name())
}

// name is what op is, or is a step of, such as "AllReduce #17".
func (op *Op) name() string {
	seq := op.seq
	if seq == 0 {
		seq = op.number
	}
	return op.lane.ep.name(op.call, seq)
}

func (e *Endpoint) name(c Call, seq uint64) string { return fmt.Sprintf("%s #%d", e.opt.Name(c), seq) }

// circle puts waits that lead back to the first rank into words.
func circle(chain []Wait) string {
	text := "deadlock"
	if len(chain) == 1 {
		return text + fmt.Sprintf(": rank %d waits for itself in %s", chain[0].Rank, chain[0].In)
	}
	for i, w := range chain {
		text += [...]string{": ", ", "}[min(i, 1)] + fmt.Sprintf("rank %d waits for rank %d in %s", w.Rank, w.For, w.In)
	}
	return text
}

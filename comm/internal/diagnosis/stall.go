package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A rank that waits too long asks the rank that it waits for. That rank answers, whatever its program does. Its report says what it does,
// what it called as the collective in question, and, if it waits too, for which rank, and who is the suspect as far as it knows. It reports
// again when it knows more. So the reason travels back along the chain of waits. If calls differ, the group fails as soon as that is known.
// Everything else goes into the error of the rank whose timeout comes first.

const (
	// firstPause is how long an operation is waited for before the first question.
	firstPause = time.Second
	// warnAfter is how long it is waited for before the log tells, if its time is not nearly up by then.
	warnAfter = 10 * time.Second
)

// FirstPause is how long an operation, which may take timeout (0: no limit), is waited for before it is a stall.
func FirstPause(timeout time.Duration) time.Duration { return min(firstPause, longestPause(timeout)) }

// longestPause is the time between questions, from which the reason for a wait of timeout comes a long way.
func longestPause(timeout time.Duration) time.Duration {
	if timeout <= 0 {
		return warnAfter
	}
	return min(max(timeout/32, time.Millisecond), warnAfter)
}

// An Operation is what a rank waits for. Wait.For is negative if any rank will do.
type Operation struct {
	Wait
	Seq    uint64 // of the collective that it is a step of, or 0
	IsSend bool
}

// A Stall is an operation that has been waited for long enough to ask why, and what is known of the reason.
type Stall struct {
	since   time.Time
	timeout time.Duration
	pause   time.Duration // before the next question
	asked   time.Time     // the oldest question that has not been answered; zero: there is none
	state   string        // of the peer that has not, or of the way to it, if anything is known
	report  *WaitReport   // the last answer
	at      time.Time     // it came
	warned  time.Duration // how long the wait had lasted when the log was told
}

// NewStall is a stall that has lasted since then; it may last for timeout (0: no limit).
func NewStall(since time.Time, timeout time.Duration) Stall {
	return Stall{since: since, timeout: timeout, pause: firstPause}
}

// Since is when the wait began.
func (s *Stall) Since() time.Time { return s.since }

// IsTimeUp reports whether the wait has lasted as long as it may.
func (s *Stall) IsTimeUp(now time.Time) bool { return s.timeout > 0 && now.Sub(s.since) >= s.timeout }

// IsUnanswered reports whether a question has not been answered.
func (s *Stall) IsUnanswered() bool { return !s.asked.IsZero() }

// Asked says that the peer has been asked.
func (s *Stall) Asked(now time.Time) {
	if s.asked.IsZero() {
		s.asked = now
	}
}

// NextPause is how long to wait before the next question.
func (s *Stall) NextPause(now time.Time) time.Duration {
	s.pause = min(2*s.pause, longestPause(s.timeout))
	if s.timeout > 0 {
		s.pause = min(s.pause, s.timeout-now.Sub(s.since))
	}
	return s.pause
}

// Answered takes in the peer's answer, and reports whether that is news.
func (s *Stall) Answered(r *WaitReport, now time.Time) (news bool) {
	news = r.isNews(s.report)
	s.report, s.at, s.asked = r, now, time.Time{}
	return news
}

// Suspect is who the peer has said is at the end of its wait, or nil.
func (s *Stall) Suspect(now time.Time) *Suspect {
	if s.report == nil || s.report.Suspect == nil {
		return nil
	}
	return s.aged(now)
}

func (s *Stall) aged(now time.Time) *Suspect {
	return &Suspect{s.report.Suspect.Rank, s.report.Suspect.aged(now.Sub(s.at))}
}

// reportDelay is how long an operation is waited for before the log tells, and a question before its peer counts as silent.
func (s *Stall) reportDelay() time.Duration {
	if s.timeout > 0 {
		return min(warnAfter, s.timeout/4)
	}
	return warnAfter
}

// isSilent reports whether the peer is known to be.
func (s *Stall) isSilent(now time.Time) bool {
	return s.IsUnanswered() && now.Sub(s.asked) >= s.reportDelay()
}

// Warning is the suspect that the log has to name, if it is time again and no other rank is nearer to the reason. state is what the
// peer is in if it does not answer.
func (s *Stall) Warning(op Operation, state string, now time.Time) *Suspect {
	s.state = state
	waited := now.Sub(s.since)
	if waited < max(s.reportDelay(), 2*s.warned) || s.report == nil && !s.isSilent(now) {
		return nil
	}
	s.warned = waited
	chain, suspect := s.Follow(op, now)
	if suspect == nil { // a circle, of which the lowest rank tells
		low := slices.MinFunc(chain, func(a, b Wait) int { return a.Rank - b.Rank })
		if low.Rank != op.Rank {
			return nil
		}
		return &Suspect{low.For, Activity{Text: circle(chain)}}
	}
	if len(chain) > 1 {
		return nil
	}
	return suspect
}

// Failure is why the operation fails now that its time is up.
func (s *Stall) Failure(op Operation, now time.Time) *Failure {
	chain, suspect := s.Follow(op, now)
	if suspect == nil {
		return &Failure{Kind: Deadlocked, Rank: chain[0].Rank, Text: circle(chain), Waits: chain, Late: true, Err: ErrTimeout}
	}
	return &Failure{Kind: PeerFailed, Rank: suspect.Rank, Text: suspect.String(), Late: true, Err: ErrTimeout}
}

// Follow follows the wait-for graph: it returns how the wait leads from one rank to the next, and the suspect at the end, or nil if it
// leads in a circle, which is then all that is returned.
func (s *Stall) Follow(op Operation, now time.Time) ([]Wait, *Suspect) {
	chain, r := []Wait{op.Wait}, s.report
	is := func(text string) *Suspect { return &Suspect{op.For, Activity{Text: text}} }
	switch {
	case op.For < 0:
		return chain, is("nobody has sent what " + op.In + " waits for")
	case op.For == op.Rank:
		return chain, nil
	case s.isSilent(now):
		return chain, is("does not answer: " + cmp.Or(s.state, "it has stopped, or is cut off"))
	case r == nil:
		return chain, is("has not answered yet")
	case len(r.Chain) == 0:
		activity := r.Activity.aged(now.Sub(s.at))
		activity.Text = op.lacks(r) + activity.Text
		return chain, &Suspect{op.For, activity}
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
	if r.Suspect == nil { // the chain has changed while it was told
		return chain, &Suspect{last, Activity{Text: "is waited for"}}
	}
	return chain, s.aged(now)
}

// lacks says what op lacks of its peer, which has reported r.
func (op Operation) lacks(r *WaitReport) string {
	lack := "has not sent what %s waits for: "
	switch {
	case op.Seq > r.Seq:
		lack = "has not called %s: "
	case op.Seq > 0:
		lack = "is late in %s: "
	case op.IsSend:
		lack = "has not received what %s offers: "
	}
	return fmt.Sprintf(lack, op.In)
}

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

// Missing are the members of a group that are not known to have come to a collective.
type Missing struct {
	Seq   uint64 // the collective
	Ranks []int
	waits map[int]Wait // of those that do not come because they wait elsewhere; For is who is at the end of that
}

// Reported takes in r, in which rank, a member, says what it does.
func (m *Missing) Reported(rank int, r *WaitReport) {
	i := slices.Index(m.Ranks, rank)
	if i < 0 {
		return
	}
	delete(m.waits, rank)
	switch {
	case r.Seq >= m.Seq:
		m.Ranks = slices.Delete(m.Ranks, i, i+1)
	case len(r.Chain) > 0 && r.Suspect != nil && r.Suspect.Rank >= 0 && r.Suspect.Rank != rank:
		if m.waits == nil {
			m.waits = map[int]Wait{}
		}
		m.waits[rank] = Wait{Rank: rank, For: r.Suspect.Rank, In: r.Chain[0].In}
	}
}

// Failure is that of the collective, what, which has waited for so long. At fault is a rank that does not wait itself, if there is one.
func (m *Missing) Failure(what string, after time.Duration) *Failure {
	slices.Sort(m.Ranks)
	f := &Failure{
		Kind: Absent, Rank: m.Ranks[0], Text: what, Missing: m.Ranks, Late: true, After: after, Err: ErrTimeout,
	}
	for _, rank := range slices.Backward(m.Ranks) {
		if w, waits := m.waits[rank]; waits {
			f.Waits = append(f.Waits, w)
		} else {
			f.Rank = rank
		}
	}
	slices.Reverse(f.Waits)
	return f
}

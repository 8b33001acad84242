package endpoint

import (
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
)

// compare fails the lane if source, which has begun f, has made other calls than this rank. What this rank does not remember, or has
// not come to, it cannot tell. The mutex is held.
func (l *Lane) compare(source int, f call.Fingerprint) error {
	r := l.collectives.At(f.Seq)
	if r == nil {
		return nil
	}
	if r.Fingerprint != f {
		f := l.mismatch(source, f)
		l.fail(f, -1)
		return f
	}
	l.ep.peers[source].agreed = agreed{l, f.Seq}
	return nil
}

// agreed is up to which collective a peer's calls are known to be this rank's, in the lane in which it was seen last that they are.
type agreed struct {
	lane *Lane
	seq  uint64
}

// mismatch is the failure of a lane in which source has called theirs while this rank called something else, then or before.
func (l *Lane) mismatch(source int, theirs call.Fingerprint) *diagnosis.Failure {
	mine := l.collectives.Last()
	if r := l.collectives.At(theirs.Seq); r != nil {
		mine = r.Fingerprint
	}
	f := &diagnosis.Failure{
		Kind: diagnosis.Mismatched, Rank: source, Text: "called something else",
		Earlier: mine.Seq == theirs.Seq && mine.Before != theirs.Before,
		Calls:   []diagnosis.RankCall{{Rank: l.ep.rank, Seq: mine.Seq, Call: mine.Call}, {Rank: source, Seq: theirs.Seq, Call: theirs.Call}},
	}
	if p := l.ep.peers[source]; p.agreed.lane == l {
		f.Agreed = p.agreed.seq
	}
	return f
}

// compareAll fails the lane if a message has come from a member that has called something else, or that was sent in a collective in
// which this rank has not awaited it. The mutex is held.
func (l *Lane) compareAll() error {
	last := l.collectives.Last().Seq
	for _, m := range l.queues.Unexpected() {
		if m.Seq == 0 || m.Seq > last {
			continue
		}
		if err := l.compare(m.Source, m.Fingerprint); err != nil {
			return err
		}
		if m.Seq < last || !l.collectives.Latest().IsUnderWay() {
			return l.unwanted(m)
		}
	}
	for source, f := range l.leftAt {
		if err := l.compare(source, f); err != nil {
			return err
		}
	}
	return nil
}

// takeInTime is how long CompareAll takes in what one member sends without end.
const takeInTime = 10 * time.Millisecond

// CompareAll takes in what has come from other members, and fails the lane if that tells of other calls than this rank has made.
func (l *Lane) CompareAll() {
	e := l.ep
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.usable() != nil {
		return
	}
	for _, r := range l.members {
		for begun := time.Now(); time.Since(begun) < takeInTime; {
			if p := e.peers[r]; p.link.Stream == nil || !e.pull(p) {
				break
			}
		}
	}
	l.takeOver()
	if l.usable() == nil {
		_ = l.compareAll() // the lane has failed with it
	}
}

package shm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Nobody takes bytes of another rank before both are known to have made the same calls. Whatever ranks tell of an operation carries
// its tag, which holds a digest of all calls of the group up to that one: so a difference shows whenever ranks meet, however long
// ago it was. What has been told of the last operations is kept, for ranks that come later, and to find out which calls differed
// first. No rank goes further ahead of the others than that reaches back; see stayInReach.
//
// The digest has 64 bits, of which 32 travel. So one comparison in 2^32 of different histories fails to tell, but the next one
// of the same histories is another chance: the digests differ for good, and other bits of that travel with every operation.

// A Call is what ranks agree on when they make one: words that are equal on all of them. They are those of endpoint.Words.
type Call struct{ What, RootAndBefore, Count uint64 }

// store sets c, which is shared, to v.
func (c *Call) store(v Call) {
	cpu.StorePlain(&c.What, v.What)
	cpu.StorePlain(&c.RootAndBefore, v.RootAndBefore)
	cpu.StorePlain(&c.Count, v.Count)
}

// load is c, which is shared.
func (c *Call) load() Call {
	return Call{cpu.Load(&c.What), cpu.Load(&c.RootAndBefore), cpu.Load(&c.Count)}
}

// tagOf is the tag of operation op of a team, with which the group's history has that digest.
func tagOf(op, history uint64) uint64 { return op<<32 | history>>32 }

// apart is how many operations tag is ahead of other, which is less than 2^31 either way.
func apart(tag, other uint64) int { return int(int32(uint32(tag>>32) - uint32(other>>32))) }

// A Deed is an operation that a rank has told of.
type Deed struct {
	tag  uint64
	Seq  uint64 // its number among the group's calls
	Call Call
}

// farthest is how many operations a rank whose data others read goes ahead of any. Those who read it may be one further.
const farthest = remembered / 2

// tell lets the others know what the operation is, just before they look at the clock, which is in the same line.
func (t *Team) tell() {
	if !t.told {
		t.told = true
		did := &t.ranks[t.me].past[t.op%remembered]
		cpu.StorePlain(&did.Seq, t.seq)
		did.Call.store(t.call)
		cpu.StoreRelease(&did.tag, t.tag)
		cpu.StoreRelease(&t.ranks[t.me].tag, t.tag)
	}
}

// stayInReach makes sure that all ranks can read this one's deeds as long as they need them, before they may take its data and go
// on.
func (t *Team) stayInReach() error {
	if t.op <= t.free {
		return nil
	}
	behind := 0
	for r := range t.ranks {
		if r == t.me {
			continue
		}
		if err := t.until(r, at(t.op-farthest, 0)); err != nil {
			return err
		}
		if err := t.compare(r); err != nil {
			return err
		}
		behind = max(behind, int(int64(at(t.op, 0)-t.seen[r]&^(1<<stepBits-1))>>stepBits))
	}
	t.free = t.op + uint64(max(farthest-behind, 0))
	return nil
}

// compareArrived makes sure that r, which has come to this rank's operation, has called the same, and all the same before.
func (t *Team) compareArrived(r int) error {
	if t.agreed[r] == t.op {
		return nil
	}
	if tag := cpu.Load(&t.ranks[r].tag); tag != t.tag && cpu.Load(&t.ranks[r].past[t.op%remembered].tag) != t.tag {
		t.tell()
		return t.mismatch(r) // or it is further ahead than it could be if calls were alike
	}
	t.agreed[r] = t.op
	return nil
}

// compare makes sure that r and this rank have made the same calls, as far as both have told.
func (t *Team) compare(r int) error {
	if t.agreed[r] == t.op || !t.differs(r, t.tag) {
		return nil
	}
	t.tell()
	return t.mismatch(r)
}

// differs says whether r's calls and those of this rank up to tag are known to differ.
func (t *Team) differs(r int, tag uint64) bool {
	other := cpu.Load(&t.ranks[r].tag)
	ahead, deeds := apart(other, tag), t.ranks[r]
	switch {
	case other == 0 || tag == 0: // one of them has told of nothing
		return false
	case ahead < 0:
		tag, other, ahead, deeds = other, tag, -ahead, t.ranks[t.me]
	}
	if ahead > 0 {
		other = cpu.Load(&deeds.past[tag>>32%remembered].tag)
	}
	return apart(other, tag) == 0 && other != tag
}

// CompareAll compares what this rank has told of last with what others have told. Nothing is under way: it may be called by any
// goroutine.
func (t *Team) CompareAll() error {
	tag := cpu.Load(&t.ranks[t.me].tag)
	for r := range t.ranks {
		if r != t.me && t.differs(r, tag) {
			return t.mismatch(r)
		}
	}
	return nil
}

// A Mismatch says that another rank's calls differ from this one's.
type Mismatch struct {
	Rank         int
	Mine, Theirs Deed   // the first ones that are known to differ
	Agreed       uint64 // the number of the last call up to which all are alike, as far as is known
}

func (m *Mismatch) Error() string { return fmt.Sprintf("rank %d has called something else", m.Rank) }

// mismatch tells how r's calls differ from this rank's.
func (t *Team) mismatch(r int) *Mismatch {
	mine, theirs := t.ranks[t.me], t.ranks[r]
	tag, other := cpu.Load(&mine.tag), cpu.Load(&theirs.tag)
	m := &Mismatch{Rank: r, Mine: mine.deed(tag >> 32), Theirs: theirs.deed(other >> 32), Agreed: t.agreed[r]}
	op := tag >> 32
	if apart(other, tag) < 0 {
		op = other >> 32
	}
	for range remembered {
		a, b := mine.deed(op), theirs.deed(op)
		if a.tag>>32 == op && a.tag == b.tag {
			m.Agreed = a.Seq
			break
		}
		if a.tag>>32 == op && b.tag>>32 == op {
			m.Mine, m.Theirs = a, b
		}
		op = uint64(uint32(op - 1))
	}
	return m
}

// deed is what c's rank has told of the operation whose number ends with op, or another one.
func (c *control) deed(op uint64) Deed {
	from := &c.past[op%remembered]
	d := Deed{tag: cpu.Load(&from.tag)}
	d.Seq, d.Call = cpu.Load(&from.Seq), from.Call.load()
	if cpu.Load(&from.tag) != d.tag { // it is being written over
		return Deed{}
	}
	return d
}

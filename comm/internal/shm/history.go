package shm

import (
	"fmt"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// No rank uses bytes of another one before it knows that both have made the same calls. Everything that ranks publish of an operation
// carries its flag, which has the number of the operation and a digest of all calls of the group up to that one. So ranks notice a
// difference the next time one waits for the other, however long ago it was. Every rank keeps records of its last operations, for ranks
// that are behind it, and to find the first calls that differ. No rank gets further ahead than these records reach back (boundSkew).
//
// The digest has 64 bits, of which a flag has 32. So one comparison in 2^32 misses a difference. The next comparison may find it: the
// digests stay different, and every operation carries other bits of them.

// A Call is what ranks must agree on when they make a call: the words of a call.Packed.
type Call struct{ What, RootAndBefore, Count uint64 }

// store sets c, which is in shared memory, to v.
func (c *Call) store(v Call) {
	cpu.StorePlain(&c.What, v.What)
	cpu.StorePlain(&c.RootAndBefore, v.RootAndBefore)
	cpu.StorePlain(&c.Count, v.Count)
}

// load is c, which is in shared memory.
func (c *Call) load() Call {
	return Call{cpu.Load(&c.What), cpu.Load(&c.RootAndBefore), cpu.Load(&c.Count)}
}

// flagOf returns the flag of operation op of a team. history is the digest of all calls of the group up to that one.
func flagOf(op, history uint64) uint64 { return op<<32 | history>>32 }

// opsAhead is how many operations flag is ahead of other, which is less than 2^31 either way.
func opsAhead(flag, other uint64) int { return int(int32(uint32(flag>>32) - uint32(other>>32))) }

// An OpRecord is an operation that a rank has published.
type OpRecord struct {
	flag uint64
	Seq  uint64 // its number among the group's calls
	Call Call
}

// mostSkew is how many operations a rank whose data others read may be ahead of any of them. Its readers may be one further.
const mostSkew = recordsPerRank / 2

// publish publishes the operation to the others, before they see the clock, which is in the same cache line.
func (t *Team) publish() {
	if !t.published {
		t.published = true
		record := &t.ranks[t.me].records[t.op%recordsPerRank]
		cpu.StorePlain(&record.Seq, t.seq)
		record.Call.store(t.call)
		cpu.StoreRelease(&record.flag, t.flag)
		cpu.StoreRelease(&t.ranks[t.me].flag, t.flag)
	}
}

// boundSkew waits until no other rank is so far behind this one that it would miss one of this rank's records.
func (t *Team) boundSkew() error {
	if t.op <= t.skewBoundUntil {
		return nil
	}
	behind := 0
	for r := range t.ranks {
		if r == t.me {
			continue
		}
		if err := t.waitClock(r, at(t.op-mostSkew, 0)); err != nil {
			return err
		}
		if err := t.compare(r); err != nil {
			return err
		}
		behind = max(behind, int(int64(at(t.op, 0)-t.seen[r]&^(1<<stepBits-1))>>stepBits))
	}
	t.skewBoundUntil = t.op + uint64(max(mostSkew-behind, 0))
	return nil
}

// compareArrived makes sure that r, which has begun this rank's operation, has made the same calls up to this one.
func (t *Team) compareArrived(r int) error {
	if t.agreed[r] == t.op {
		return nil
	}
	if flag := cpu.Load(&t.ranks[r].flag); flag != t.flag && cpu.Load(&t.ranks[r].records[t.op%recordsPerRank].flag) != t.flag {
		t.publish()
		return t.mismatch(r) // or it is further ahead than it could be with the same calls
	}
	t.agreed[r] = t.op
	return nil
}

// compare makes sure that r and this rank have made the same calls, as far as both have published them.
func (t *Team) compare(r int) error {
	if t.agreed[r] == t.op || !t.differs(r, t.flag) {
		return nil
	}
	t.publish()
	return t.mismatch(r)
}

// differs reports whether r's calls and those of this rank up to flag are known to differ.
func (t *Team) differs(r int, flag uint64) bool {
	other := cpu.Load(&t.ranks[r].flag)
	ahead, records := opsAhead(other, flag), t.ranks[r]
	switch {
	case other == 0 || flag == 0: // one of them has published nothing
		return false
	case ahead < 0:
		flag, other, ahead, records = other, flag, -ahead, t.ranks[t.me]
	}
	if ahead > 0 {
		other = cpu.Load(&records.records[flag>>32%recordsPerRank].flag)
	}
	return opsAhead(other, flag) == 0 && other != flag
}

// CompareAll compares the last operation that this rank has published with those of the others. Any goroutine may call it while no
// operation is under way.
func (t *Team) CompareAll() error {
	flag := cpu.Load(&t.ranks[t.me].flag)
	for r := range t.ranks {
		if r != t.me && t.differs(r, flag) {
			return t.mismatch(r)
		}
	}
	return nil
}

// A Mismatch says that another rank's calls differ from this one's.
type Mismatch struct {
	Rank         int
	Mine, Theirs OpRecord // the first ones that are known to differ
	Agreed       uint64   // the number of the last call up to which all are known to be the same
}

func (m *Mismatch) Error() string { return fmt.Sprintf("rank %d has called something else", m.Rank) }

// mismatch is how r's calls differ from this rank's.
func (t *Team) mismatch(r int) *Mismatch {
	mine, theirs := t.ranks[t.me], t.ranks[r]
	flag, other := cpu.Load(&mine.flag), cpu.Load(&theirs.flag)
	m := &Mismatch{Rank: r, Mine: mine.record(flag >> 32), Theirs: theirs.record(other >> 32), Agreed: t.agreed[r]}
	op := flag >> 32
	if opsAhead(other, flag) < 0 {
		op = other >> 32
	}
	for range recordsPerRank {
		a, b := mine.record(op), theirs.record(op)
		if a.flag>>32 == op && a.flag == b.flag {
			m.Agreed = a.Seq
			break
		}
		if a.flag>>32 == op && b.flag>>32 == op {
			m.Mine, m.Theirs = a, b
		}
		op = uint64(uint32(op - 1))
	}
	return m
}

// record is what c's rank has published of the operation whose number ends with op, or of another one.
func (c *control) record(op uint64) OpRecord {
	from := &c.records[op%recordsPerRank]
	r := OpRecord{flag: cpu.Load(&from.flag)}
	r.Seq, r.Call = cpu.Load(&from.Seq), from.Call.load()
	if cpu.Load(&from.flag) != r.flag { // it is being overwritten
		return OpRecord{}
	}
	return r
}

package shm

import (
	"slices"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Where there are more ranks than processors, ranks that wait must let others run, and it matters whom. Each says on which
// processor it is. A rank that waits lets the others there run at once if they are behind it: nobody else can, and as long as
// it looks they do not get on. If none of them is behind, what it waits for is done elsewhere, at this moment, and it looks on.
// So each rank has its turn once in an operation, and a change of turns is most of what one costs.
//
// A kernel takes a tenth of a second to spread processes that always have something to do, so ranks do it themselves.

const farLooks = 50 // where what is waited for is done elsewhere

// A crowd is what a rank of a crowded team knows of where ranks are.
type crowd struct {
	on     uint32   // its processor, from 1; 0: not known
	turns  int      // that others have been given
	places []uint32 // room for that of every rank
}

// isCrowd says whether this rank has to let others of its processor run.
func (t *Team) isCrowd() bool { return t.crowded && !t.shared }

// makeRoom lets others run until r's clock says target, for a few turns, and returns what it says.
func (t *Team) makeRoom(r int, target uint64) uint64 {
	t.come()
	clock := &t.ranks[r].clock
	for range firstTurns {
		if now := cpu.Await(clock, target, t.glances(r)); cpu.Reached(now, target) {
			return now
		}
		t.giveTurn()
	}
	return cpu.Load(clock)
}

// glances is how often this rank looks at r's clock before others get their turn.
func (t *Team) glances(r int) int {
	if !t.isCrowd() {
		return looksAtAll
	}
	mine := cpu.Load(&t.ranks[t.me].clock)
	for i, other := range t.ranks {
		if i != t.me && cpu.Load32(&other.on) == t.on && (i == r || !cpu.Reached(cpu.Load(&other.clock), mine)) {
			return 1
		}
	}
	return farLooks
}

// giveTurn lets others of this processor run. Now and then it finds out which that is, and goes to another where there are
// fewer ranks.
func (t *Team) giveTurn() {
	yield()
	if t.turns++; t.turns%turnsToAsk != 1 {
		return
	}
	if on := processor(); on != t.on {
		t.on = on
		cpu.Store32(&t.ranks[t.me].on, on)
	}
	t.places = t.places[:0]
	for _, other := range t.ranks {
		t.places = append(t.places, cpu.Load32(&other.on))
	}
	if isSpare(t.places, t.me) {
		moveTo(func(to uint32) bool { return isLighter(t.places, t.me, to) })
	}
}

// isSpare says whether it is rank me that would go, if one of those on its processor did: the last of several. places has the
// processor of every rank.
func isSpare(places []uint32, me int) bool {
	on := places[me]
	return on != 0 && slices.Contains(places[:me], on) && !slices.Contains(places[me+1:], on)
}

// isLighter says whether fewer ranks are on processor to than rank me leaves behind on its own.
func isLighter(places []uint32, me int, to uint32) bool {
	here, there := 0, 0
	for _, on := range places {
		switch on {
		case places[me]:
			here++
		case to:
			there++
		}
	}
	return to != places[me] && there < here-1
}

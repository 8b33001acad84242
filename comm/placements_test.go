package comm

import (
	"fmt"
	"strings"
	"testing"
)

// placements are where the ranks of worlds are that share memory: the machine of rank r of size. But for shm, ranks are
// as if they were on several machines.
var placements = map[string]func(r, size int) int{
	"shm":       func(int, int) int { return 0 },
	"mixed":     func(r, _ int) int { return r % 2 },
	"halves":    func(r, size int) int { return 2 * r / size },
	"apart":     func(r, _ int) int { return r },
	"one apart": func(r, _ int) int { return min(r, 1) },
	"one pair":  func(r, size int) int { return min(r, size-2) },
	"uneven":    func(r, size int) int { return 3 * r * r / (size * size) },
	"scattered": func(r, _ int) int { return []int{2, 0, 0, 1, 2, 0, 1}[r%7] },
}

// inPieces is the end of the names of worlds in which vectors go through the stages in small pieces, several at once.
const inPieces = ", in pieces"

// worldOver makes a world on a transport, or one whose ranks share memory. In the world "chunks", messages are cut into
// very small chunks.
func worldOver(t testing.TB, name string, size int) *testWorld {
	if name == "chunks" {
		w := newTestWorld(t, transports["mem"](t, size))
		for _, g := range w.groups {
			g.world.ChunkSize, g.core.Pipeline().ChunkSize = 400, 400
		}
		return w
	}
	if placement, is := strings.CutSuffix(name, inPieces); is {
		w := worldOver(t, placement, size)
		for _, g := range w.groups {
			g.world.ChunkSize, g.core.Pipeline().ChunkSize, g.world.MayOverlap = 500, 500, true
		}
		return w
	}
	if placement, is := strings.CutPrefix(name, "far, "); is {
		return farWorld(t, placement, size)
	}
	if placements[name] == nil {
		return newTestWorld(t, transports[name](t, size))
	}
	return newSharingWorld(t, transports["mem"](t, size), machinesOf(name, size))
}

// machinesOf returns the machine of every rank in a placement; none if there is no such placement.
func machinesOf(placement string, size int) []string {
	machine := placements[strings.TrimSuffix(placement, inPieces)]
	if machine == nil {
		return nil
	}
	machines := make([]string, size)
	for r := range machines {
		machines[r] = fmt.Sprint("machine ", machine(r, size))
	}
	return machines
}

package core

import "github.com/gorun/gorun/comm/internal/choice"

// A Distance says how far away a rank is from rank 0.
type Distance uint8

// The distances.
const (
	UnknownDistance Distance = iota // it has not been measured
	Near                            // on rank 0's machine, or less than 2 ms away
	Far
)

// table returns the table by which members choose how to exchange messages. It is the same on all members, and so is what
// the functions below return.
func (g *Group) table() *choice.Table {
	switch {
	case !g.World.needNetwork(g.Ranks):
		return choice.Near
	case g.isFar():
		return choice.Far
	}
	return choice.Network
}

// isFar reports whether members are far away from each other. Ranks have measured only the way to rank 0. So it is
// known only of members of which some are near rank 0 and some far away from it: those that are all far away may be
// near each other.
func (g *Group) isFar() bool {
	if g.World.Distances == nil {
		return false
	}
	near, far := false, false
	for _, r := range g.Ranks {
		near, far = near || g.World.Distances[r] == Near, far || g.World.Distances[r] == Far
	}
	return near && far
}

// chunkSize returns how many bytes of a message travel at once. Short chunks would slow down connections that carry many
// bytes in a round trip.
func (g *Group) chunkSize() int {
	w, t := g.World, g.table()
	if w.HaveProcessors && w.Distances == nil {
		return min(w.ChunkSize, t.OwnChunk)
	}
	return min(w.ChunkSize, t.Chunk)
}

// pieceSizes returns the least and the most bytes that a rank sends to another machine in one piece of a long vector.
// Short pieces pay only if stages overlap.
func (g *Group) pieceSizes() (least, most int) {
	w, t := g.World, g.messages.planner
	least, most = t.LeastPiece, t.MostPiece
	if !w.MayOverlap {
		least = most
	}
	shorter := func(n int) int { return max(n*min(w.ChunkSize, t.Chunk)/t.Chunk, 1) }
	return shorter(least), shorter(most)
}

// mostJoined returns the most bytes of separate blocks that members copy, so that several blocks travel as one message.
func (g *Group) mostJoined() int {
	w := g.World
	type network struct{ kernel, network string }
	networks := map[network]bool{}
	for _, r := range g.Ranks {
		place := w.Peers[r].Place
		networks[network{place.Kernel, place.Network}] = true
	}
	if share := len(networks) > 1 || w.canShare(g.Ranks); share && len(networks) < len(g.Ranks) {
		return g.messages.planner.MostJoined
	}
	return choice.Any
}

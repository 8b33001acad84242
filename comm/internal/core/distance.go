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

// algorithms returns the algorithms with messages among which members choose. It is the same on all members.
func (g *Group) algorithms() *choice.Table {
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

// chunkSize returns how many bytes of a message travel at once. It is the same on all members. Short chunks would slow
// down connections that carry many bytes in a round trip.
func (g *Group) chunkSize() int {
	w := g.World
	if !w.needNetwork(g.Ranks) || !w.HaveProcessors || w.Distances != nil {
		return w.ChunkSize
	}
	return min(w.ChunkSize, choice.NetworkChunkSize)
}

// partSizes returns the least and the most bytes that a rank sends to another machine in one piece of a long vector.
// They are the same on all members. Short pieces pay only if stages overlap, and not between machines that are far away
// from each other.
func (g *Group) partSizes() (least, most int) {
	w := g.World
	most = max(w.ChunkSize/2, 1)
	if w.MayOverlap && !g.isFar() {
		return max(w.ChunkSize/16, 1), most
	}
	return most, most
}

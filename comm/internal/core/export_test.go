package core

// MovesInMemory returns Moves of the backend for shared memory.
func MovesInMemory(g *Group) uint64 { return g.others()[0].Moves() }

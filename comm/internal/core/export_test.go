package core

// MovesInMemory is what the backend that has memory says of its moves.
func MovesInMemory(g *Group) uint64 { return (*g.first.Load()).Moves() }

package comm

import "github.com/gorun/gorun/comm/internal/explain"

// Explain says by which algorithm this process's world carries out op on buffers of so many bytes, and what the
// alternatives are. It returns a text of a few lines, the same on every rank. Operations have the names of gorun bench:
// all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter, scan, sendrecv, barrier.
// Bytes are those of the whole buffer: the output of all_gather and gather, the input of reduce_scatter, all_to_all and
// scatter.
//
// Algorithms with a dash instead of a limit are used only if a rule names them. Each table says where its choice comes
// from: it is built in, or tuned by [WithTuning].
//
// If no world is open, Explain is about a world of WORLD_SIZE ranks, or of two, on machines that are near each other.
func Explain(op string, bytes int) string {
	if w := process.World(); w != nil {
		return explain.Group(w.All, op, bytes)
	}
	return explain.Environment(op, bytes)
}

// Explain is like the function Explain, for g.
func (g *Group) Explain(op string, bytes int) string {
	if g == nil {
		return errNoGroup().Error() + "\n"
	}
	return explain.Group(g.core, op, bytes)
}

// Ways returns the algorithms among which g chooses for op, as [WithTuning] and [Explain] name them, in the order of
// the lengths for which they are chosen. It returns none if members are on several machines, and share memory on some:
// ask a group that has one rank on each machine.
func (g *Group) Ways(op string) []string {
	if g == nil {
		return nil
	}
	return explain.Algorithms(g.core, op)
}

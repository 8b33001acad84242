//go:build schedule && linux

package segment

// Simulated is a segment for tests over memory that is theirs. It must not be closed.
func Simulated(mem []byte) *Segment { return &Segment{fd: -1, mem: mem} }

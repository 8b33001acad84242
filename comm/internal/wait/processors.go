package wait

import (
	"encoding/hex"
	"math/bits"
)

// Processors says what the ranks of a machine have to run on.
type Processors struct {
	CPUs        int
	Ranks       int  // of all groups
	SameProcess bool // some of them are goroutines of one process
}

// Oversubscribed reports whether there are more ranks than processors.
func (p Processors) Oversubscribed() bool { return p.Ranks > p.CPUs }

// ranksPerCPU is the most ranks of a team for each processor. More ranks, which wait for each other in turn, are faster with messages,
// which the kernel keeps for them.
const ranksPerCPU = 32

// Suffice reports whether n ranks should work together in shared memory on these processors.
func (p Processors) Suffice(n int) bool { return n <= ranksPerCPU*p.CPUs }

// CountCPUs returns how many processors there are in sets, each from [CPUs]. It is 0 if one of the sets is not known.
func CountCPUs(sets ...string) int {
	var all []byte
	for _, s := range sets {
		set, err := hex.DecodeString(s)
		if err != nil || len(set) == 0 {
			return 0
		}
		for i, b := range set {
			if i == len(all) {
				all = append(all, 0)
			}
			all[i] |= b
		}
	}
	n := 0
	for _, b := range all {
		n += bits.OnesCount8(b)
	}
	return n
}

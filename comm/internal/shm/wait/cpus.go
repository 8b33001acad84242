package wait

import (
	"encoding/hex"
	"math/bits"
)

// CountCPUs is how many processors there are in sets, each from [CPUs]. It is 0 if one of them is not known.
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

package wait

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// CPUs are the processors that this process may use: a bit for each, the first ones first, in hexadecimal. Empty: not known.
func CPUs() string {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return ""
	}
	var set []byte
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if cpu%8 == 0 {
			set = append(set, 0)
		}
		if allowed.IsSet(cpu) {
			set[cpu/8] |= 1 << (cpu % 8)
			left--
		}
	}
	return hex.EncodeToString(set)
}

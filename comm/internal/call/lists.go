package call

import (
	"fmt"
	"math/bits"
	"slices"
)

// SetList makes list, of numbers that are not negative, what ranks agree on in call: the numbers themselves, in as few bits as the
// largest of them takes, or a checksum if they are too many for that.
func SetList(call *Call, list []int) {
	width := max(bits.Len(uint(max(0, slices.Max(list)))), 1)
	call.Root = int32(len(list))
	if width*len(list) > 64 {
		call.Reduce, call.Count = 0, Checksum(list)
		return
	}
	call.Reduce, call.Count = uint8(width), 0
	for i, n := range list {
		call.Count |= uint64(n) << (i * width)
	}
}

// listOf returns the list that SetList has set, or nil if it was too long.
func listOf(call Call) []int {
	width := int(call.Reduce)
	if width == 0 || width > 64 || int(call.Root) > 64/width { // as no rank has it
		return nil
	}
	list := make([]int, max(0, call.Root))
	for i := range list {
		list[i] = int(call.Count >> (i * width) & (1<<width - 1))
	}
	return list
}

// describeList describes the list that SetList has set.
func describeList(call Call, of string) string {
	if list := listOf(call); list != nil {
		return fmt.Sprintf("%s %v", of, list)
	}
	return fmt.Sprintf("%s: %d, with checksum %08x", of, call.Root, uint32(call.Count))
}

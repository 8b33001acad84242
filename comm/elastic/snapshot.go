package elastic

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A snapshot is a copy of the contents of items.
type snapshot struct {
	packed []byte   // values, encoded, and short slices: see pack
	large  [][]byte // the other slices, in order
}

// alloc makes room for large slices, unless there is. With large pages, where the kernel gives them, a commit is written up to twice as fast.
func (c *snapshot) alloc(items []Item) {
	if c.large == nil {
		for _, b := range largeSlices(items) {
			room := make([]byte, len(b))
			segment.AdviseLarge(wholePages(room))
			c.large = append(c.large, room)
		}
	}
}

// largeSlices are the slices that are not packed, in order.
func largeSlices(items []Item) (list [][]byte) {
	for _, i := range items {
		if i.isLarge() {
			list = append(list, i.bytes)
		}
	}
	return list
}

func copyAll(to, from [][]byte) {
	for i := range to {
		copy(to[i], from[i])
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksums returns one for each item.
func (c *snapshot) checksums(items []Item) []uint32 {
	sums, large := make([]uint32, len(items)), c.large
	packed, _ := contents(c.packed, items) // pack has made it
	for n, i := range items {
		if i.isLarge() {
			sums[n], large = crc32.Checksum(large[0], castagnoli), large[1:]
		} else {
			sums[n] = crc32.Checksum(packed[n], castagnoli)
		}
	}
	return sums
}

// combined is one checksum of several.
func combined(sums []uint32) uint32 {
	var b []byte
	for _, sum := range sums {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return crc32.Checksum(b, castagnoli)
}

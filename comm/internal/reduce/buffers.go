package reduce

import "unsafe"

// Buffers are several slices of elements of one type, without that type.
type Buffers struct {
	first *[]byte // the header of the first one, whose length is in elements
	n     int
}

// BuffersOf returns bufs without their type.
func BuffersOf[T any](bufs [][]T) Buffers {
	return Buffers{(*[]byte)(unsafe.Pointer(unsafe.SliceData(bufs))), len(bufs)}
}

// Len is the number of buffers.
func (b Buffers) Len() int { return b.n }

// Count is the number of elements in buffer i.
func (b Buffers) Count(i int) int { return len(*b.at(i)) }

// Bytes returns buffer i, whose elements have elem bytes.
func (b Buffers) Bytes(i, elem int) []byte {
	s := *b.at(i)
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice(unsafe.SliceData(s), len(s)*elem)
}

func (b Buffers) at(i int) *[]byte { return &unsafe.Slice(b.first, b.n)[i] }

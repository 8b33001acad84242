package stream

import (
	"errors"
	"math"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// A ring carries bytes from one process to another in records, which begin at cache lines. A record is a word with its length, and its
// bytes. The word is 0 until the record is complete. Before the writer sets the word, it puts a 0 where the next record will begin. So the
// reader polls only the record itself, and a short message moves one or two cache lines between the processors.
//
// In the other direction only a count moves: how many bytes the reader has taken. The writer reads it when it runs out of space.

const (
	lineSize     = 64 // a cache line
	wordSize     = 8
	smallestRing = 64 << 10
	largestRing  = 2 << 20
	allRings     = 64 << 20 // bytes, of all ranks of a machine together
	populateStep = 64 << 10 // a ring is populated in steps of this many bytes
)

// errCorrupt says that the other end has written what no ring contains.
var errCorrupt = errors.New("nonsense in shared memory")

// ringSize is the bytes of a ring if n ranks share the machine.
func ringSize(n int) int {
	size := largestRing
	for size > smallestRing && n*(n-1)*size > allRings {
		size /= 2
	}
	return size
}

// A header is what the ends of a ring share beside its records.
type header struct {
	taken uint64 // bytes, of whole records, that the reader has taken; only the reader writes here
	_     [15]uint64

	readerSleeps uint32 // until there is something to read; then the writer rings the doorbell
	writerSleeps uint32 // until there is space; then the reader rings the doorbell
	_            [30]uint32
}

// newHeaders returns the headers of two rings, at the beginning of a segment.
func newHeaders(mem []byte) *[2]header { return (*[2]header)(unsafe.Pointer(&mem[0])) }

// An end is one end of a ring. It trusts nothing in shared memory.
type end struct {
	header *header
	mem    []byte // its length is a power of two
	at     uint64 // where the next record begins, in bytes since the first
}

// word returns the word of the record that begins at byte at.
func (e *end) word(at uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&e.mem[at&uint64(len(e.mem)-1)]))
}

// stride is the distance from a record of n bytes to the next one.
func stride(n int) uint64 { return uint64(wordSize+n+lineSize-1) / lineSize * lineSize }

// A ringWriter is the end of a ring where bytes go in.
type ringWriter struct {
	end
	limit     uint64 // the end of the free space, when the writer last looked
	populated uint64 // the end of what has been populated
	lacked    int    // bytes of the record for which there was no space
}

func newRingWriter(h *header, mem []byte) (ringWriter, error) {
	r := ringWriter{end: end{header: h, mem: mem}, limit: uint64(len(mem))}
	_, err := r.reserve(0)
	return r, err
}

// write writes as much of v, one buffer after the other, as there is space for in whole records.
func (w *ringWriter) write(v [][]byte) (n int, err error) {
	left := 0
	for _, b := range v {
		left += len(b)
	}
	skip := 0 // bytes of v[0]
	for left > 0 {
		size := min(left, LongestRecord)
		if ok, err := w.reserve(size); !ok {
			return n, err
		}
		at, rest := w.at+wordSize, size
		for rest > 0 {
			b := v[0][skip:]
			if len(b) > rest {
				b = b[:rest]
				skip += rest
			} else {
				v, skip = v[1:], 0
			}
			w.put(at, b)
			at += uint64(len(b))
			rest -= len(b)
		}
		next := w.at + stride(size)
		cpu.StorePlain(w.word(next), 0)
		cpu.StoreRelease(w.word(w.at), uint64(size))
		w.at = next
		n += size
		left -= size
	}
	return n, nil
}

// put copies b into the ring at byte at.
func (w *ringWriter) put(at uint64, b []byte) {
	there := w.mem[at&uint64(len(w.mem)-1):]
	n := min(len(there), len(b))
	cpu.Copy(there[:n], b[:n])
	cpu.CopyPlain(w.mem, b[n:])
}

// writeNow writes a and b as one record, if there is contiguous space for it, and reports whether it has.
//
// Then, while there is time, it takes the cache lines of a next record of the same length away from the reader's processor. It leaves the
// first line, which the reader polls.
func (w *ringWriter) writeNow(a, b []byte) bool {
	n := len(a) + len(b)
	next := w.at + stride(n)
	i := w.at & uint64(len(w.mem)-1)
	if next+lineSize > min(w.limit, w.populated) || i+uint64(wordSize+n) > uint64(len(w.mem)) {
		return false
	}
	into := w.mem[i+wordSize:]
	cpu.CopyPlain(into, a)
	cpu.CopyPlain(into[len(a):], b)
	cpu.StorePlain(w.word(next), 0)
	cpu.StoreRelease(w.word(w.at), uint64(n))
	last := min(next+stride(n), w.limit-lineSize, w.populated-lineSize)
	w.at = next
	for line := next + lineSize; line <= last; line += lineSize {
		cpu.StorePlain(w.word(line), 0)
	}
	return true
}

// reserve reports whether there is space for a record of n bytes, and for the word of the next one. It populates that space.
func (w *ringWriter) reserve(n int) (bool, error) {
	need := w.at + stride(n) + lineSize
	if need > w.limit {
		taken := cpu.Load(&w.header.taken)
		if taken > w.at || w.at-taken > uint64(len(w.mem)) || taken%lineSize != 0 {
			return false, errCorrupt
		}
		if w.limit = taken + uint64(len(w.mem)); need > w.limit {
			w.lacked = n
			return false, nil
		}
	}
	for w.populated < need {
		if err := segment.Populate(w.mem[w.populated : w.populated+populateStep]); err != nil {
			return false, err
		}
		if w.populated += populateStep; w.populated == uint64(len(w.mem)) {
			w.populated = math.MaxUint64
		}
	}
	return true, nil
}

// A ringReader is the end of a ring where bytes come out.
type ringReader struct {
	end
	from uint64 // where the rest of the record under way begins
	rest int    // the bytes of this rest
}

// isReadable reports whether there is something to read.
func (r *ringReader) isReadable() bool { return r.rest > 0 || cpu.Load(r.word(r.at)) != 0 }

// read reads the bytes that are there into b.
func (r *ringReader) read(b []byte) (n int, err error) {
	for n < len(b) {
		if r.rest == 0 {
			if ok, err := r.open(1); !ok {
				return n, err
			}
		}
		part := b[n:min(n+r.rest, len(b))]
		first := r.ahead()
		first = first[:min(len(first), len(part))]
		copyOut(part[:len(first)], first)
		copyOut(part[len(first):], r.mem[:len(part)-len(first)])
		n += len(part)
		r.skip(len(part))
	}
	return n, nil
}

// copyOut copies from the ring.
func copyOut(dst, src []byte) {
	cpu.ClaimCopied(src)
	cpu.Copy(dst, src)
}

// open begins the next record, if it arrives within so many polls.
func (r *ringReader) open(polls int) (bool, error) {
	word := r.word(r.at)
	for range polls {
		size := cpu.Load(word)
		if size == 0 {
			continue
		}
		if size > LongestRecord {
			return false, errCorrupt
		}
		r.from, r.rest = r.at+wordSize, int(size)
		r.at += stride(r.rest)
		return true, nil
	}
	return false, nil
}

// ahead returns the rest of the record under way, as far as it is contiguous.
func (r *ringReader) ahead() []byte {
	i := r.from & uint64(len(r.mem)-1)
	return r.mem[i:min(i+uint64(r.rest), uint64(len(r.mem)))]
}

// skip marks n bytes of the record as read.
func (r *ringReader) skip(n int) {
	r.from += uint64(n)
	if r.rest -= n; r.rest == 0 {
		cpu.StoreRelease(&r.header.taken, r.at)
	}
}

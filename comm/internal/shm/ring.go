package shm

import (
	"errors"
	"math"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// A ring carries bytes from one process to another in records, which begin at cache lines: a word that says how long the record
// is, and its bytes. The word is 0 until the record is whole; before the writer makes it another number, it puts a 0 where the
// next record will begin. So the reader looks at nothing but the record itself: a short message is one cache line that goes
// from one processor to the other, or two.
//
// The other way goes only how much the reader has taken, at which the writer looks when it runs out of room.

const (
	wordSize     = 8
	smallestRing = 64 << 10
	largestRing  = 2 << 20
	allRings     = 64 << 20 // bytes, of all ranks of a machine together
	ringPiece    = 64 << 10 // a ring gets its memory in pieces of this many bytes
)

// errNonsense says that the other end has written what no ring says.
var errNonsense = errors.New("nonsense in shared memory")

// ringSize is how large rings are between n ranks.
func ringSize(n int) int {
	size := largestRing
	for size > smallestRing && n*(n-1)*size > allRings {
		size /= 2
	}
	return size
}

// A way is what the ends of a ring tell each other beside.
type way struct {
	taken uint64 // bytes, whole records, that the reader is done with; it alone writes here
	_     [15]uint64

	hungry uint32 // the reader sleeps until there is something; the writer is to ring
	full   uint32 // the writer sleeps until there is room; the reader is to ring
	_      [30]uint32
}

// newWays are the ways of two rings, at the beginning of a segment.
func newWays(mem []byte) *[2]way { return (*[2]way)(unsafe.Pointer(&mem[0])) }

// An end is one end of a ring. It trusts nothing in shared memory.
type end struct {
	way *way
	mem []byte // its length is a power of two
	at  uint64 // where the next record begins, in bytes since the first
}

// word is that of the record that begins at.
func (e *end) word(at uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&e.mem[at&uint64(len(e.mem)-1)]))
}

// stride is how far the record after one of n bytes is.
func stride(n int) uint64 { return uint64(wordSize+n+lineSize-1) / lineSize * lineSize }

// A ringWriter is where bytes go in.
type ringWriter struct {
	end
	limit  uint64 // where there is no room any more, when last looked
	backed uint64 // up to where there is memory behind it
	lacked int    // bytes of the record for which there was no room
}

func newRingWriter(w *way, mem []byte) (ringWriter, error) {
	r := ringWriter{end: end{way: w, mem: mem}, limit: uint64(len(mem))}
	_, err := r.room(0)
	return r, err
}

// write writes as much of v, one slice after the other, as there is room for in whole records.
func (w *ringWriter) write(v [][]byte) (n int, err error) {
	left := 0
	for _, b := range v {
		left += len(b)
	}
	skip := 0 // bytes of v[0]
	for left > 0 {
		size := min(left, longestRecord)
		if ok, err := w.room(size); !ok {
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

func (w *ringWriter) put(at uint64, b []byte) {
	there := w.mem[at&uint64(len(w.mem)-1):]
	n := min(len(there), len(b))
	cpu.Copy(there[:n], b[:n])
	cpu.CopyPlain(w.mem, b[n:])
}

// writeNow writes a and b as one record, if that takes nothing but to copy them, and says whether it has.
//
// Afterwards, with time to spare, it takes the cache lines of a next record that is as long away from the reader's processor: but
// for the first, which the reader looks at.
func (w *ringWriter) writeNow(a, b []byte) bool {
	n := len(a) + len(b)
	next := w.at + stride(n)
	i := w.at & uint64(len(w.mem)-1)
	if next+lineSize > min(w.limit, w.backed) || i+uint64(wordSize+n) > uint64(len(w.mem)) {
		return false
	}
	into := w.mem[i+wordSize:]
	cpu.CopyPlain(into, a)
	cpu.CopyPlain(into[len(a):], b)
	cpu.StorePlain(w.word(next), 0)
	cpu.StoreRelease(w.word(w.at), uint64(n))
	last := min(next+stride(n), w.limit-lineSize, w.backed-lineSize)
	w.at = next
	for line := next + lineSize; line <= last; line += lineSize {
		cpu.StorePlain(w.word(line), 0)
	}
	return true
}

// room says whether there is room for a record of n bytes, and the word of the one after it.
func (w *ringWriter) room(n int) (bool, error) {
	need := w.at + stride(n) + lineSize
	if need > w.limit {
		taken := cpu.Load(&w.way.taken)
		if taken > w.at || w.at-taken > uint64(len(w.mem)) || taken%lineSize != 0 {
			return false, errNonsense
		}
		if w.limit = taken + uint64(len(w.mem)); need > w.limit {
			w.lacked = n
			return false, nil
		}
	}
	for w.backed < need {
		if err := back(w.mem[w.backed : w.backed+ringPiece]); err != nil {
			return false, err
		}
		if w.backed += ringPiece; w.backed == uint64(len(w.mem)) {
			w.backed = math.MaxUint64
		}
	}
	return true, nil
}

// A ringReader is where bytes come out.
type ringReader struct {
	end
	from uint64 // where what is left of the record under way begins
	rest int    // its bytes
}

// some says whether there is something to read.
func (r *ringReader) some() bool { return r.rest > 0 || cpu.Load(r.word(r.at)) != 0 }

// read reads what is there into b.
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
		get(part[:len(first)], first)
		get(part[len(first):], r.mem[:len(part)-len(first)])
		n += len(part)
		r.skip(len(part))
	}
	return n, nil
}

// get copies what the writer has put into the ring.
func get(dst, src []byte) {
	cpu.ClaimCopied(src)
	cpu.Copy(dst, src)
}

// open begins with the next record, if it comes while this looks for it.
func (r *ringReader) open(looks int) (bool, error) {
	word := r.word(r.at)
	for range looks {
		size := cpu.Load(word)
		if size == 0 {
			continue
		}
		if size > longestRecord {
			return false, errNonsense
		}
		r.from, r.rest = r.at+wordSize, int(size)
		r.at += stride(r.rest)
		return true, nil
	}
	return false, nil
}

// ahead is what is left of the record under way, as far as it lies in one piece.
func (r *ringReader) ahead() []byte {
	i := r.from & uint64(len(r.mem)-1)
	return r.mem[i:min(i+uint64(r.rest), uint64(len(r.mem)))]
}

// skip says that n bytes of the record have been read.
func (r *ringReader) skip(n int) {
	r.from += uint64(n)
	if r.rest -= n; r.rest == 0 {
		cpu.StoreRelease(&r.way.taken, r.at)
	}
}

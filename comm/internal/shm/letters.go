package shm

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Short operations go through letters: a few cache lines that say themselves to which operation they belong, in the word
// before what they carry. Who waits for a letter looks at nothing else, and reads where it lies.
//
// A rank's letters of an operation are in an entry of its mailbox. Entries are used in turn. An operation in which every rank
// reads from every other leaves them vacant as soon as the next one has been heard of; otherwise readers tell by their clocks:
// they have done step 1 when they have read.

const (
	entries   = 16 // a power of two
	entrySize = 1 << 10
	tagSize   = 8
)

type mailbox [entries][entrySize]byte

// letterSize is the bytes that a letter of n bytes takes: it shares no cache line with another.
func letterSize(n int) int { return (tagSize + n + lineSize - 1) / lineSize * lineSize }

// longestLetter is the bytes of a letter of which count fit into an entry; negative if they do not.
func longestLetter(count int) int { return entrySize/count/lineSize*lineSize - tagSize }

// isShort says whether count letters of n bytes each fit into an entry.
func isShort(n, count int) bool { return n <= longestLetter(count) }

// An entry is where the operation's letters are, in every mailbox.
type entry int

// nextEntry is the operation's.
func (t *Team) nextEntry() entry {
	t.shorts++
	return entry(t.shorts % entries)
}

// forOne makes sure that this rank may write to its entry, which is free again when reader, or everybody, has done step 1.
func (t *Team) forOne(e entry, reader int) error { return t.lend(e, vacancy{reader, t.time(1)}) }

// forAll is forOne where all ranks read from all: free again when they have come to the next operation.
func (t *Team) forAll(e entry) error { return t.lend(e, vacancy{everybody, at(t.seq+1, 0)}) }

func (t *Team) lend(e entry, until vacancy) error {
	v := &t.lent[e]
	err := t.await(v)
	*v = until
	return err
}

// write makes data a letter in this rank's entry, at byte from.
func (t *Team) write(e entry, from int, data []byte) {
	letter := t.boxes[t.me][e][from:]
	t.Sent += uint64(copy(letter[tagSize:], data))
	cpu.StoreRelease((*uint64)(unsafe.Pointer(&letter[0])), t.tag)
}

// read returns r's letter of n bytes at byte from of its entry, as soon as it is there. It stays there until this rank has
// done step 1, or comes to the next operation.
func (t *Team) read(r int, e entry, from, n int) ([]byte, error) {
	letter := t.boxes[r][e][from:][:tagSize+n]
	if !cpu.AwaitEqual((*uint64)(unsafe.Pointer(&letter[0])), t.tag, t.looks) {
		if err := t.wait(r, 1); err != nil { // or it has called something else
			return nil, err
		}
	}
	t.seen[r] = max(t.seen[r], at(t.seq, 0))
	t.Received += uint64(n)
	return letter[tagSize:], nil
}

package shm

import (
	"github.com/gorun/gorun/comm/internal/cpu"
)

// Short operations go through cells: lines of memory, each of which says itself to which operation what it carries belongs.
// Who reads looks at nothing else, and takes data and news in one: what NCCL calls LL128, with lines of 64 bytes.
//
// The cells of an operation are an entry of its rank's mailbox. Entries are used in turn. An operation in which every rank
// reads from every other leaves them vacant as soon as the next one has been read; otherwise readers tell by their clocks:
// they have done step 1 when they have read.

const (
	entries  = 16 // a power of two
	cells    = 16 // of an entry
	cellData = 56 // bytes
)

// A cell is a cache line. Its tag is that of the operation, and written last.
type cell struct {
	data [cellData]byte
	tag  uint64
}

type mailbox [entries][cells]cell

// cellsFor is how many cells n bytes need: one at least, which tells that the rank has come.
func cellsFor(n int) int { return max((n+cellData-1)/cellData, 1) }

// isShort says whether parts messages of n bytes each fit into an entry.
func isShort(n, parts int) bool { return n <= cells*cellData && parts*cellsFor(n) <= cells }

// An entry is where the cells of the operation are, in every mailbox.
type entry int

// nextEntry is the operation's.
func (t *Team) nextEntry() entry {
	t.shorts++
	return entry(t.shorts % entries)
}

// forOne makes sure that this rank may write to its entry, which is free again when reader, or everybody, has done step 1.
func (t *Team) forOne(e entry, reader int) error { return t.lend(e, vacancy{reader, at(t.seq, 1)}) }

// forAll is forOne where all ranks read from all: free again when they have come to the next operation.
func (t *Team) forAll(e entry) error { return t.lend(e, vacancy{everybody, at(t.seq+1, 0)}) }

func (t *Team) lend(e entry, until vacancy) error {
	v := &t.posted[e]
	err := t.await(v)
	*v = until
	return err
}

// write puts data into this rank's entry, from its first'th cell on.
func (t *Team) write(e entry, first int, data []byte) {
	t.Sent += uint64(len(data))
	to := t.boxes[t.me][e][first:]
	for i := range to {
		c := &to[i]
		if len(data) >= cellData {
			c.data = [cellData]byte(data)
			data = data[cellData:]
		} else {
			copy(c.data[:], data)
			data = nil
		}
		cpu.StoreRelease(&c.tag, t.tag)
		if len(data) == 0 {
			return
		}
	}
}

// read takes data out of r's entry, from its first'th cell on, as soon as it is there.
func (t *Team) read(r int, e entry, first int, data []byte) error {
	t.Received += uint64(len(data))
	from := t.boxes[r][e][first:]
	for i := range from {
		c := &from[i]
		if !cpu.AwaitEqual(&c.tag, t.tag, t.looks) {
			if err := t.wait(r, 1); err != nil { // or it has called something else
				return err
			}
		}
		if len(data) <= cellData {
			copy(data, c.data[:])
			break
		}
		*(*[cellData]byte)(data) = c.data
		data = data[cellData:]
	}
	t.seen[r] = max(t.seen[r], at(t.seq, 0))
	return nil
}

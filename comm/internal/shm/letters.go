package shm

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/cpu"
)

// Short operations go through letters: a few cache lines that say themselves to which operation they belong, in the word
// at their end, which is written last. Who waits for a letter looks at nothing else, and reads where it lies.
//
// A rank's letters of an operation are in an entry of its mailbox, which is used like a stretch of slots, but is so short that it
// stays in the caches next to the processors. An operation in which every rank reads from every other leaves entries vacant as
// soon as the next one has been heard of; otherwise readers tell by their clocks: they have done step 1 when they have read.

const tagSize = 8

type mailbox [mailboxSize]byte

// letterSize is the bytes that a letter of n bytes takes: it shares no cache line with another.
func letterSize(n int) int { return (tagSize + n + lineSize - 1) / lineSize * lineSize }

// longestLetter is the bytes of a letter of which count fit into an entry; negative if they do not.
func longestLetter(count int) int { return entrySize/count/lineSize*lineSize - tagSize }

// isShort says whether count letters of n bytes each fit into an entry.
func isShort(n, count int) bool { return n <= longestLetter(count) }

// An entry is where the operation's letters are, in every mailbox.
type entry int

// A mail is what a rank knows of the entries.
type mail struct {
	shorts   uint64 // operations that have used entries
	from, to uint64 // the operation's entry, counted in bytes as slots are

	lent           [entries]posted // entries that this rank has filled, in turn
	oldest, newest uint64          // of those that may not be vacant: the first one, and the one after the last
}

// posted is an entry that others read from.
type posted struct {
	short, from uint64
	until       vacancy
}

// nextEntry is the operation's, of size bytes.
func (m *mail) nextEntry(size int) entry {
	m.shorts++
	if m.from = m.to; m.from%mailboxSize+uint64(size) > mailboxSize {
		m.from += mailboxSize - m.from%mailboxSize
	}
	m.to = m.from + uint64(size)
	return entry(m.from % mailboxSize)
}

// forOne makes sure that this rank may write to its entry, which is free again when reader, or everybody, has done step 1.
func (t *Team) forOne(reader int) error { return t.lend(vacancy{reader, t.time(1)}) }

// forAll is forOne where all ranks read from all: free again when they have come to the next operation.
func (t *Team) forAll() error { return t.lend(vacancy{everybody, at(t.op+1, 0)}) }

func (t *Team) lend(until vacancy) error {
	if err := t.stayInReach(); err != nil {
		return err
	}
	m := &t.mail
	for m.oldest < m.newest {
		l := &m.lent[m.oldest%entries]
		if l.short+entries > m.shorts && l.from+mailboxSize >= m.to {
			break
		}
		if err := t.await(&l.until); err != nil {
			return err
		}
		m.oldest++
	}
	m.lent[m.newest%entries] = posted{m.shorts, m.from, until}
	m.newest++
	return nil
}

// letter is r's letter of n bytes at byte from of its entry, and the word behind it.
func (t *Team) letter(r int, e entry, from, n int) ([]byte, *uint64) {
	letter := t.boxes[r][int(e)+from:][:letterSize(n)]
	return letter[:n:n], (*uint64)(unsafe.Pointer(&letter[len(letter)-tagSize]))
}

// write makes data a letter in this rank's entry, at byte from.
func (t *Team) write(e entry, from int, data []byte) {
	letter, tag := t.letter(t.me, e, from, len(data))
	cpu.CopyPlain(letter, data)
	t.Sent += uint64(len(data))
	cpu.StoreRelease(tag, t.tag)
}

// sent has done step 1, with all letters, of n bytes each, written. While the others' are on their way, it asks for the lines of
// the next ones, which may be alike. Where letters take several lines that would gain nothing.
func (t *Team) sent(n int) {
	t.done(1)
	m := &t.mail
	if next, size := m.to%mailboxSize, m.to-m.from; letterSize(n) == lineSize && next+size <= mailboxSize {
		cpu.ClaimAhead(t.boxes[t.me][next : next+size])
	}
}

// read returns r's letter of n bytes at byte from of its entry, as soon as it is there. It stays there until this rank has
// done step 1, or comes to the next operation.
func (t *Team) read(r int, e entry, from, n int) ([]byte, error) {
	letter, tag := t.letter(r, e, from, n)
	beside := (*byte)(unsafe.Pointer(tag))
	if letterSize(n) == 2*lineSize { // of longer ones the lines come together in any case
		beside = &t.boxes[r][int(e)+from]
	}
	if !cpu.AwaitEqual(tag, t.tag, t.waiter.Spins, beside) {
		if err := t.wait(r, 1); err != nil { // or it has called something else
			return nil, err
		}
	}
	if now := at(t.op, 0); !cpu.Reached(t.seen[r], now) {
		t.seen[r] = now
	}
	t.Received += uint64(n)
	return letter, nil
}

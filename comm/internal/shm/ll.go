package shm

import (
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// Short operations use an LL protocol (low latency, as in NCCL): data and flag travel together. A message is a few cache lines. Its last
// word is the flag of its operation, which is written last. A reader polls only this word, and reads the data in place.
//
// The messages of a rank in one operation are in an entry of its LL buffer. The rank fills the buffer from the beginning to the end, and
// then again, as it fills its staging buffer. But the LL buffer is so short that it stays in the first caches. If every rank reads from
// every other one in an operation, an entry can be reused as soon as all have begun the next operation. Otherwise the readers' clocks
// tell: a reader has done step 1 when it has read.

const flagSize = choice.LLFlagSize

type llBuffer [llBufferSize]byte

// llSize is the bytes that a message of n bytes takes. It shares no cache line with another message.
func llSize(n int) int { return (flagSize + n + lineSize - 1) / lineSize * lineSize }

// fitsLL reports whether count messages of n bytes each fit into an entry.
func fitsLL(n, count int) bool { return n <= choice.LongestLL(count) }

// mostLLMethods is how many methods of an operation may use the LL protocol. They all write the same flag, so no entry may lie where an earlier
// one of the operation was. The buffer guarantees that only for an entry and the one before it.
const mostLLMethods = 2

// isShort reports whether the method under way moves count messages of n bytes each by the LL protocol.
func (t *Team) isShort(n, count int) bool { return t.methods < mostLLMethods && fitsLL(n, count) }

// An llEntry is where the operation's messages are, in the LL buffer of every rank.
type llEntry int

// An llState is the state of a rank's entries.
type llState struct {
	operations uint64 // how many operations have used entries
	from, to   uint64 // the operation's entry, as bytes since the first entry ever

	inUse          [llEntries]llInUse // a ring of the entries that others may still read
	oldest, newest uint64             // the first of these, and the one after the last
}

// An llInUse is an entry that others read.
type llInUse struct {
	operation, from uint64
	reuse           reuse
}

// next is the operation's entry, of size bytes.
func (s *llState) next(size int) llEntry {
	s.operations++
	if s.from = s.to; s.from%llBufferSize+uint64(size) > llBufferSize {
		s.from += llBufferSize - s.from%llBufferSize
	}
	s.to = s.from + uint64(size)
	return llEntry(s.from % llBufferSize)
}

// reserveLL waits until this rank may write to its entry. The entry can be reused when reader, or everybody, has done step 1.
func (t *Team) reserveLL(reader int) error { return t.reserveLLUntil(reuse{reader, t.time(1)}) }

// reserveLLForAll is reserveLL where all ranks read from all: the entry can be reused when they have begun the next operation.
func (t *Team) reserveLLForAll() error { return t.reserveLLUntil(reuse{everybody, at(t.op+1, 0)}) }

// reserveLLUntil is reserveLL for an entry that can be reused then.
func (t *Team) reserveLLUntil(until reuse) error {
	if err := t.boundSkew(); err != nil {
		return err
	}
	s := &t.llState
	for s.oldest < s.newest {
		oldest := &s.inUse[s.oldest%llEntries]
		if oldest.operation+llEntries > s.operations && oldest.from+llBufferSize >= s.to {
			break
		}
		if err := t.awaitReaders(&oldest.reuse); err != nil {
			return err
		}
		s.oldest++
	}
	s.inUse[s.newest%llEntries] = llInUse{s.operations, s.from, until}
	s.newest++
	return nil
}

// llMessage is r's message of n bytes at byte from of its entry, and the word behind it.
func (t *Team) llMessage(r int, e llEntry, from, n int) ([]byte, *uint64) {
	message := t.llBuffers[r][int(e)+from:][:llSize(n)]
	return message[:n:n], (*uint64)(unsafe.Pointer(&message[len(message)-flagSize]))
}

// writeLL puts data into this rank's entry, as a message at byte from.
func (t *Team) writeLL(e llEntry, from int, data []byte) {
	message, flag := t.llMessage(t.me, e, from, len(data))
	cpu.CopyPlain(message, data)
	t.Sent += uint64(len(data))
	cpu.StoreRelease(flag, t.flag)
}

// sentLL does step 1, after all messages of n bytes have been written. While the messages of the others are on their way, it claims the
// cache lines for the next operation, which is likely to be of the same kind. For messages of several lines that gains nothing.
func (t *Team) sentLL(n int) {
	t.done(1)
	s := &t.llState
	if next, size := s.to%llBufferSize, s.to-s.from; llSize(n) == lineSize && next+size <= llBufferSize {
		cpu.ClaimAhead(t.llBuffers[t.me][next : next+size])
	}
}

// readLL waits for r's message of n bytes at byte from of its entry, and returns it in place. It stays there until this rank has
// done step 1, or begins the next operation.
func (t *Team) readLL(r int, e llEntry, from, n int) ([]byte, error) {
	message, flag := t.llMessage(r, e, from, n)
	beside := (*byte)(unsafe.Pointer(flag))
	if llSize(n) == 2*lineSize { // the lines of longer ones are fetched together in any case
		beside = &t.llBuffers[r][int(e)+from]
	}
	if !cpu.AwaitEqual(flag, t.flag, t.waiter.Spins, beside) {
		if err := t.wait(r, 1); err != nil { // or it has called something else
			return nil, err
		}
	}
	if now := at(t.op, 0); !cpu.Reached(t.seen[r], now) {
		t.seen[r] = now
	}
	t.Received += uint64(n)
	return message, nil
}

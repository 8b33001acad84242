package launcher

import (
	"encoding/binary"
	"sync"
)

// RecentSize is how many bytes a Recent keeps of each worker at most, with headerSize bytes for each piece.
const RecentSize = 128 << 10

const (
	headerSize = 5 // the stream, and the length of the piece
	firstSize  = 4 << 10
)

// A recentBuffer keeps the last pieces that one worker has written. Its zero value is empty, and needs no memory. Several goroutines may
// use it.
type recentBuffer struct {
	mu    sync.Mutex
	ring  []byte // of pieces, each with its header
	first uint64 // where the oldest piece is, in bytes since the beginning
	end   uint64 // where the next piece will be
}

// A Piece is what a worker wrote to one stream at one time. It may end in the middle of a line.
type Piece struct {
	Stream Std
	Text   []byte
}

// add adds a copy of text, which a worker has written to a stream.
func (b *recentBuffer) add(stream Std, text []byte) {
	if len(text) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if most := RecentSize - headerSize; len(text) > most {
		text = text[len(text)-most:]
	}
	b.makeRoom(headerSize + len(text))
	header := [headerSize]byte{byte(stream)}
	binary.LittleEndian.PutUint32(header[1:], uint32(len(text)))
	b.write(header[:])
	b.write(text)
}

// makeRoom makes room for n bytes: it makes the ring longer, or removes the oldest pieces.
func (b *recentBuffer) makeRoom(n int) {
	used := int(b.end - b.first)
	if used+n > len(b.ring) && len(b.ring) < RecentSize {
		size := max(len(b.ring), firstSize)
		for size < used+n && size < RecentSize {
			size *= 2
		}
		longer := make([]byte, size)
		for at := b.first; at < b.end; at++ {
			longer[at%uint64(size)] = b.ring[at%uint64(len(b.ring))]
		}
		b.ring = longer
	}
	for int(b.end-b.first)+n > len(b.ring) {
		b.first += uint64(headerSize + b.lengthAt(b.first))
	}
}

func (b *recentBuffer) write(text []byte) {
	at := int(b.end % uint64(len(b.ring)))
	copied := copy(b.ring[at:], text)
	copy(b.ring, text[copied:])
	b.end += uint64(len(text))
}

func (b *recentBuffer) read(at uint64, n int) []byte {
	out := make([]byte, n)
	from := int(at % uint64(len(b.ring)))
	copied := copy(out, b.ring[from:])
	copy(out[copied:], b.ring)
	return out
}

func (b *recentBuffer) lengthAt(at uint64) int {
	var header [headerSize]byte
	for i := range header {
		header[i] = b.ring[(at+uint64(i))%uint64(len(b.ring))]
	}
	return int(binary.LittleEndian.Uint32(header[1:]))
}

// since is Recent.Since for this worker.
func (b *recentBuffer) since(next uint64) (pieces []Piece, now uint64, missed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if missed = next < b.first; missed {
		next = b.first
	}
	for next < b.end {
		n := b.lengthAt(next)
		pieces = append(pieces, Piece{Stream: Std(b.ring[next%uint64(len(b.ring))]), Text: b.read(next+headerSize, n)})
		next += uint64(headerSize + n)
	}
	return pieces, b.end, missed
}

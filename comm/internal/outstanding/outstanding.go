// Package outstanding knows which operations under way use which memory. Package elastic asks it: a copy of memory to which one writes would
// have parts of its result, and to restore memory that one reads would change what it sends. Nothing is recorded until Watch is called, so
// programs that do not use package elastic pay nothing.
package outstanding

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A record is of one operation.
type record struct {
	what     string // its name in errors
	hasEnded func() bool
	writes   []span
	reads    []span
}

// A span is the addresses of a buffer. It does not keep the buffer alive.
type span struct{ from, to uintptr }

func spanOf(buf []byte) span {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	return span{from, from + uintptr(len(buf))}
}

func spansOf(bufs [][]byte) (spans []span) {
	for _, b := range bufs {
		if len(b) > 0 {
			spans = append(spans, spanOf(b))
		}
	}
	return spans
}

func (s span) overlaps(t span) bool { return s.from < t.to && t.from < s.to }

var (
	watched atomic.Bool

	mu        sync.Mutex
	records   []record // oldest first
	cleanFrom int      // with so many records, or minRecords if that is more, Add removes all that have ended
)

const minRecords = 64

// Watch makes all operations that start from now on known.
func Watch() { watched.Store(true) }

// IsWatched reports whether Watch has been called. If not, there is no need to call Add.
func IsWatched() bool { return watched.Load() }

// Add records an operation that has started. It writes to some buffers, and reads others, until hasEnded returns true, which any goroutine
// may call, with the mutex held. Operations usually end in the order in which they start, so Add removes the oldest ones if they have ended.
func Add(what string, hasEnded func() bool, writes, reads [][]byte) {
	r := record{what, hasEnded, spansOf(writes), spansOf(reads)}
	if r.writes == nil && r.reads == nil {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	for len(records) > 0 && records[0].hasEnded() {
		records[0] = record{}
		records = records[1:]
	}
	if len(records) >= max(cleanFrom, minRecords) {
		removeEnded()
		cleanFrom = 2 * len(records)
	}
	records = append(records, r)
}

// Any reports whether any operation is under way that uses memory.
func Any() bool {
	mu.Lock()
	defer mu.Unlock()
	removeEnded()
	return len(records) > 0
}

// WriterOf returns an operation under way that writes to buf, or an empty string.
func WriterOf(buf []byte) string { return find(buf, func(r record) []span { return r.writes }) }

// ReaderOf returns an operation under way that reads buf, or an empty string.
func ReaderOf(buf []byte) string { return find(buf, func(r record) []span { return r.reads }) }

func find(buf []byte, spans func(record) []span) string {
	mu.Lock()
	defer mu.Unlock()
	removeEnded()
	i := slices.IndexFunc(records, func(r record) bool { return slices.ContainsFunc(spans(r), spanOf(buf).overlaps) })
	if i < 0 {
		return ""
	}
	return records[i].what
}

// removeEnded removes the records of operations that have ended. The mutex is held.
func removeEnded() {
	left := records[:0]
	for _, r := range records {
		if !r.hasEnded() {
			left = append(left, r)
		}
	}
	clear(records[len(left):])
	records = left
}

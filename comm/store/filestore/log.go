//go:build linux

package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/store"
)

// The file of a Store is a log: its magic, then records. Each record is appended with one write. Integers are
// little-endian.
//
//	length u32 of the body, crc32c u32 of the body, crc32c u32 of these eight bytes
//	body: kind u8 (setRecord or deleteRecord), key length u16, key, value to the end
//
// If the last record is cut short, its writer was killed. Nobody has seen it, and the next writer truncates it. Any other
// damage means that somebody else wrote to the file.
const (
	magic      = "gorun store 1\r\n\x00"
	headerSize = 12
	bodyStart  = 1 + 2 // in a body, where the key begins
	maxBody    = bodyStart + store.MaxKey + store.MaxValue
	maxSize    = 1 << 30
)

// The kinds of records. They have the numbers of the same requests in package tcpstore.
const (
	setRecord    = 1
	deleteRecord = 6
)

var crc32c = crc32.MakeTable(crc32.Castagnoli)

// A logFile is one handle's view of the file. It is not safe for concurrent use.
type logFile struct {
	file *os.File
	dir  *os.File // in which file is
	path string
	end  int64 // of the records that have been read
}

// failure returns an error that names the file and an offset in it.
func (l *logFile) failure(at int64, format string, args ...any) error {
	return fmt.Errorf("store: file %s, offset %d: %w", l.path, at, fmt.Errorf(format, args...))
}

// reset empties the file. Only the first handle may.
func (l *logFile) reset() error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(magic), 0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	l.end = int64(len(magic))
	return nil
}

// checkMagic returns an error unless the file begins like a store, or is empty.
func (l *logFile) checkMagic() error {
	head := make([]byte, len(magic))
	n, err := l.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("store: %w", err)
	}
	if string(head[:n]) != magic[:n] {
		return l.failure(0, "this is not a store; it was left as it is")
	}
	l.end = int64(len(magic))
	return nil
}

// size returns the size of the file. It is an error if the file has been removed or cut short.
func (l *logFile) size() (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &st); err != nil {
		return 0, fmt.Errorf("store: file %s: %w", l.path, err)
	}
	switch {
	case st.Nlink == 0:
		return 0, fmt.Errorf("store: file %s was removed while it was in use", l.path)
	case st.Size < l.end:
		return 0, l.failure(st.Size, "it was cut short while it was in use, it had %d bytes", l.end)
	}
	return st.Size, nil
}

// replay calls apply with every record that has been appended since the last replay. A nil value deletes the key. The caller
// holds the access lock.
func (l *logFile) replay(apply func(key string, value []byte)) error {
	size, err := l.size()
	if err != nil {
		return err
	}
	for size-l.end >= headerSize {
		var head [headerSize]byte
		if _, err := l.file.ReadAt(head[:], l.end); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		length := int64(binary.LittleEndian.Uint32(head[0:]))
		if crc32.Checksum(head[:8], crc32c) != binary.LittleEndian.Uint32(head[8:]) || length < bodyStart || length > maxBody {
			return l.failure(l.end, "there is no record of a store")
		}
		if length > size-l.end-headerSize {
			return nil // its writer was killed
		}
		body := make([]byte, length)
		if _, err := l.file.ReadAt(body, l.end+headerSize); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		key, value, ok := decode(body)
		if !ok || crc32.Checksum(body, crc32c) != binary.LittleEndian.Uint32(head[4:]) {
			return l.failure(l.end, "the record is damaged")
		}
		apply(key, value)
		l.end += headerSize + length
	}
	return nil
}

// append writes a record after those that have been replayed. A nil value deletes the key. The caller holds the access lock
// for writing. append truncates what a killed writer has left.
func (l *logFile) append(key string, value []byte) error {
	record := encode(key, value)
	if l.end+int64(len(record)) > maxSize {
		return fmt.Errorf("store: file %s is full: it may have %d MiB", l.path, maxSize>>20)
	}
	if err := l.file.Truncate(l.end); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := l.file.WriteAt(record, l.end); err != nil {
		return fmt.Errorf("store: %w", errors.Join(err, l.file.Truncate(l.end)))
	}
	l.end += int64(len(record))
	return nil
}

// encode returns a record. A nil value deletes the key.
func encode(key string, value []byte) []byte {
	record := make([]byte, headerSize, headerSize+bodyStart+len(key)+len(value))
	kind := byte(setRecord)
	if value == nil {
		kind = deleteRecord
	}
	record = append(record, kind)
	record = binary.LittleEndian.AppendUint16(record, uint16(len(key)))
	record = append(append(record, key...), value...)
	body := record[headerSize:]
	binary.LittleEndian.PutUint32(record[0:], uint32(len(body)))
	binary.LittleEndian.PutUint32(record[4:], crc32.Checksum(body, crc32c))
	binary.LittleEndian.PutUint32(record[8:], crc32.Checksum(record[:8], crc32c))
	return record
}

// decode parses a body of at least bodyStart bytes.
func decode(body []byte) (key string, value []byte, ok bool) {
	rest := body[bodyStart:]
	n := int(binary.LittleEndian.Uint16(body[1:]))
	if n > len(rest) {
		return "", nil, false
	}
	key, value = string(rest[:n]), rest[n:]
	switch body[0] {
	case setRecord:
		return key, value, store.CheckKey(key) == nil && store.CheckValues(key, value) == nil
	case deleteRecord:
		return key, nil, store.CheckKey(key) == nil && len(value) == 0
	default:
		return "", nil, false
	}
}

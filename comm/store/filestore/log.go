//go:build linux

package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// The file of a FileStore is its magic, then records, each appended with one write. Integers are little-endian.
//
//	length u32 of the body, crc32c u32 of the body, crc32c u32 of these eight bytes
//	body: kind u8 (storeSet or storeDelete), key length u16, key, value to the end
//
// A record that the file ends in the middle of was being written by a process that was killed: nobody has seen
// it, and the next writer cuts it off. Everything else that does not fit means that somebody else wrote to the file.
const (
	fileMagic   = "gorun store 1\r\n\x00"
	fileHeader  = 12
	fileBody    = 1 + 2 // of a body, what comes before the key
	fileMaxBody = fileBody + MaxStoreKey + MaxStoreValue
	fileMaxSize = 1 << 30
)

var crc32c = crc32.MakeTable(crc32.Castagnoli)

// A fileLog is one handle's place in the file. It is not safe for concurrent use.
type fileLog struct {
	file   *os.File
	folder *os.File // in which it is
	path   string
	end    int64 // where the records that were read end
}

func (l *fileLog) failure(at int64, format string, args ...any) error {
	return fmt.Errorf("store: file %s, offset %d: %w", l.path, at, fmt.Errorf(format, args...))
}

// start empties the file. Only the first of those who have it open may.
func (l *fileLog) start() error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(fileMagic), 0); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	l.end = int64(len(fileMagic))
	return nil
}

// recognise says whether the file is a store's, or could become one's: it is when it begins like one.
func (l *fileLog) recognise() error {
	head := make([]byte, len(fileMagic))
	n, err := l.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("store: %w", err)
	}
	if string(head[:n]) != fileMagic[:n] {
		return l.failure(0, "this is not a store; it was left as it is")
	}
	l.end = int64(len(fileMagic))
	return nil
}

// size returns how long the file is, unless it is no longer the file at path.
func (l *fileLog) size() (int64, error) {
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

// replay calls apply with every record that has been appended since; a nil value is a deletion. It needs the lock.
func (l *fileLog) replay(apply func(key string, value []byte)) error {
	size, err := l.size()
	if err != nil {
		return err
	}
	for size-l.end >= fileHeader {
		var head [fileHeader]byte
		if _, err := l.file.ReadAt(head[:], l.end); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		length := int64(binary.LittleEndian.Uint32(head[0:]))
		if crc32.Checksum(head[:8], crc32c) != binary.LittleEndian.Uint32(head[8:]) || length < fileBody || length > fileMaxBody {
			return l.failure(l.end, "there is no record of a store")
		}
		if length > size-l.end-fileHeader {
			return nil // cut off by a kill
		}
		body := make([]byte, length)
		if _, err := l.file.ReadAt(body, l.end+fileHeader); err != nil {
			return fmt.Errorf("store: %w", err)
		}
		key, value, ok := parseFileBody(body)
		if !ok || crc32.Checksum(body, crc32c) != binary.LittleEndian.Uint32(head[4:]) {
			return l.failure(l.end, "the record is damaged")
		}
		apply(key, value)
		l.end += fileHeader + length
	}
	return nil
}

// append adds a record after what was replayed; a nil value is a deletion. It needs the lock, and cuts off what a killed
// writer left.
func (l *fileLog) append(key string, value []byte) error {
	record := fileRecord(key, value)
	if l.end+int64(len(record)) > fileMaxSize {
		return fmt.Errorf("store: file %s is full: it may have %d MiB", l.path, fileMaxSize>>20)
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

func fileRecord(key string, value []byte) []byte {
	record := make([]byte, fileHeader, fileHeader+fileBody+len(key)+len(value))
	kind := storeSet
	if value == nil {
		kind = storeDelete
	}
	record = append(record, byte(kind))
	record = binary.LittleEndian.AppendUint16(record, uint16(len(key)))
	record = append(append(record, key...), value...)
	body := record[fileHeader:]
	binary.LittleEndian.PutUint32(record[0:], uint32(len(body)))
	binary.LittleEndian.PutUint32(record[4:], crc32.Checksum(body, crc32c))
	binary.LittleEndian.PutUint32(record[8:], crc32.Checksum(record[:8], crc32c))
	return record
}

// parseFileBody takes a body of at least fileBody bytes apart.
func parseFileBody(body []byte) (key string, value []byte, ok bool) {
	rest := body[fileBody:]
	n := int(binary.LittleEndian.Uint16(body[1:]))
	if n > len(rest) {
		return "", nil, false
	}
	key, value = string(rest[:n]), rest[n:]
	switch storeKind(body[0]) {
	case storeSet:
		return key, value, checkStoreSizes(key, value) == nil
	case storeDelete:
		return key, nil, checkStoreSizes(key) == nil && len(value) == 0
	default:
		return "", nil, false
	}
}

package launcher

import (
	"bytes"
	"io"
	"os"

	"github.com/DeRuina/timberjack"
)

// openLogFile opens the file at path to append to it, or makes it. With a limit of bytes it is put aside whenever it
// has got so long, at the next end of a line or 1 MiB later, and what follows goes to a new one: stdout.log becomes
// stdout-<time>-size.log, so that the bytes are all there in the order of the names, the file itself being the last.
// Of those put aside the newest keep stay; 0: all.
func openLogFile(path string, limit int64, keep int) (io.WriteCloser, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil || limit == 0 {
		return file, err
	}
	info, err := file.Stat()
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return &sizedFile{limit: limit, size: info.Size(), full: info.Size() >= limit, rotator: timberjack.Logger{
		Filename: path, MaxSize: never, MaxBackups: keep, FileMode: 0o644,
		BackupTimeFormat: "2006-01-02T15-04-05.000000", // two that are put aside in one microsecond are told apart by another number
	}}, nil
}

// never is a size in MiB at which no file arrives: the end of a line, which a rotator does not know, decides.
const never = 1 << 40

// sizedFile is a log file with a limit.
type sizedFile struct {
	rotator timberjack.Logger
	limit   int64
	size    int64 // of the file being written
	full    bool  // it is to be put aside before the next byte
}

// Write writes all of b, be it to several files. After an error the file is of no more use.
func (f *sizedFile) Write(b []byte) (written int, err error) {
	for written < len(b) {
		if f.full {
			if err := f.rotator.Rotate(); err != nil {
				return written, err
			}
			f.size, f.full = 0, false
		}
		rest := b[written:]
		n, err := f.rotator.Write(rest[:f.share(rest)])
		written += n
		if err != nil {
			return written, err
		}
		f.size += int64(n)
		f.full = f.size >= f.limit && (b[written-1] == '\n' || f.size >= f.limit+maxLine)
	}
	return written, nil
}

// Close closes the file, which is not put aside then, and waits for the removal of those that do not stay.
func (f *sizedFile) Close() error { return f.rotator.Close() }

// share returns how much of b goes to this file, which is not full.
func (f *sizedFile) share(b []byte) int {
	if f.size+int64(len(b)) < f.limit {
		return len(b)
	}
	n := len(b)
	first := max(0, f.limit-f.size-1) // the first byte that can be the last
	if i := bytes.IndexByte(b[first:], '\n'); i >= 0 {
		n = int(first) + i + 1
	}
	return int(min(int64(n), f.limit+maxLine-f.size))
}

package launcher

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// openLogFile opens the file at path for appending, or creates it. When the file has reached limit bytes, it is rotated at the
// next end of a line, or at most 1 MiB later: stdout.log becomes stdout-<time>-size.log, and what follows goes to a new
// stdout.log. So all bytes are kept, in the order of the names; the file itself is the last. Only the newest keep rotated files
// stay; 0: all.
func openLogFile(path string, limit int64, keep int) (io.WriteCloser, error) {
	if limit == 0 {
		return openToAppend(path)
	}
	f := enter(path, limit, keep)
	if err := f.open(); err != nil {
		f.leave()
		return nil, err
	}
	return f, nil
}

func openToAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// A sizedFile is a log file with a size limit. Several gangs of a node may write to the same one: they share its size, and who rotates it
// does so for all.
type sizedFile struct {
	path  string
	limit int64
	keep  int
	users int // guarded by sizedFiles

	mu   sync.Mutex
	file *os.File
	err  error // because of which nobody can use it any more
	size int64 // of the file being written
	full bool  // it is to be rotated before the next byte
}

// sizedFiles holds every sizedFile that this process has open, by path.
var sizedFiles = struct {
	sync.Mutex
	open map[string]*sizedFile
}{open: map[string]*sizedFile{}}

// enter returns the sizedFile at path, which is not open yet if this is its first user.
func enter(path string, limit int64, keep int) *sizedFile {
	sizedFiles.Lock()
	defer sizedFiles.Unlock()
	f := sizedFiles.open[path]
	if f == nil {
		f = &sizedFile{path: path, limit: limit, keep: keep}
		sizedFiles.open[path] = f
	}
	f.users++
	return f
}

// leave reports whether its last user has left f.
func (f *sizedFile) leave() bool {
	sizedFiles.Lock()
	defer sizedFiles.Unlock()
	if f.users--; f.users > 0 {
		return false
	}
	delete(sizedFiles.open, f.path)
	return true
}

// open opens f unless another user has.
func (f *sizedFile) open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil || f.err != nil {
		return f.err
	}
	file, err := openToAppend(f.path)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // nothing was written
		return err
	}
	f.file, f.size, f.full = file, info.Size(), info.Size() >= f.limit
	return nil
}

// Write writes all of b, if necessary to several files. After an error, nobody can use the file any more.
func (f *sizedFile) Write(b []byte) (written int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		written, f.err = f.write(b)
	}
	return written, f.err
}

func (f *sizedFile) write(b []byte) (written int, err error) {
	for written < len(b) {
		if f.full {
			if err := f.rotate(); err != nil {
				return written, err
			}
			f.size, f.full = 0, false
		}
		rest := b[written:]
		n, err := f.file.Write(rest[:f.share(rest)])
		written += n
		if err != nil {
			return written, err
		}
		f.size += int64(n)
		f.full = f.size >= f.limit && (b[written-1] == '\n' || f.size >= f.limit+maxLine)
	}
	return written, nil
}

// Close ends the part of one user. The last one closes the file without rotating it.
func (f *sizedFile) Close() error {
	if !f.leave() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// share returns how much of b belongs into this file, which is not full.
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

// rotated is the end of a rotated file's name, as a layout of package time.
const rotated = "-2006-01-02T15-04-05.000000-size.log"

// rotate renames the file and begins a new one. If somebody has removed or moved the file, as logrotate does, it only begins a new one.
func (f *sizedFile) rotate() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	dir, name := filepath.Split(f.path)
	layout, at := strings.TrimSuffix(name, ".log")+rotated, time.Now().UTC()
	for exists(dir + at.Format(layout)) {
		at = at.Add(time.Microsecond)
	}
	if err := os.Rename(f.path, dir+at.Format(layout)); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if f.keep > 0 {
		removeOld(dir, layout, f.keep)
	}
	file, err := openToAppend(f.path)
	if err == nil {
		f.file = file
	}
	return err
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// removeOld removes rotated files beyond those to keep. If one cannot be removed now, the next call tries again.
func removeOld(dir, layout string, keep int) {
	entries, _ := os.ReadDir(dir) // by name, so by time
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		_, err := time.Parse(layout, e.Name())
		return err != nil
	})
	for _, e := range entries[:max(0, len(entries)-keep)] {
		_ = os.Remove(dir + e.Name())
	}
}

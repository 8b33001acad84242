package launcher

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// openLogFile opens the file at path to append to it, or makes it. With a limit of bytes the file is rotated when it has
// reached the limit, at the next end of a line or 1 MiB later: stdout.log becomes stdout-<time>-size.log, and what follows goes
// to a new stdout.log. So the bytes are all there in the order of the names, the file itself being the last. Of the rotated
// files the newest keep stay; 0: all.
func openLogFile(path string, limit int64, keep int) (io.WriteCloser, error) {
	file, err := openToAppend(path)
	if err != nil || limit == 0 {
		return file, err
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return &sizedFile{file: file, limit: limit, keep: keep, size: info.Size(), full: info.Size() >= limit}, nil
}

func openToAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// A sizedFile is a log file with a limit.
type sizedFile struct {
	file  *os.File
	limit int64
	keep  int
	size  int64 // of the file being written
	full  bool  // it is to be rotated before the next byte
}

// Write writes all of b, be it to several files. After an error the file is of no more use.
func (f *sizedFile) Write(b []byte) (written int, err error) {
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

// Close closes the file, which is not rotated then.
func (f *sizedFile) Close() error { return f.file.Close() }

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

// rotate gives the file the name of a rotated one, and begins a new file.
func (f *sizedFile) rotate() error {
	path := f.file.Name()
	if err := f.file.Close(); err != nil {
		return err
	}
	prefix, suffix := rotatedName(path)
	name := func(at time.Time) string { return prefix + at.UTC().Format(rotationTime) + suffix }
	at := time.Now()
	for ; exists(name(at)); at = at.Add(time.Microsecond) {
	}
	if err := os.Rename(path, name(at)); err != nil {
		return err
	}
	if f.keep > 0 {
		f.removeOld(path)
	}
	file, err := openToAppend(path)
	if err == nil {
		f.file = file
	}
	return err
}

// removeOld removes the rotated files that do not stay. One that cannot be removed now may be the next time.
func (f *sizedFile) removeOld(path string) {
	prefix, suffix := rotatedName(path)
	entries, _ := os.ReadDir(filepath.Dir(path)) // by name, so by time
	var rotated []string
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(path), e.Name())
		at, isPrefixed := strings.CutPrefix(name, prefix)
		at, isSuffixed := strings.CutSuffix(at, suffix)
		if _, err := time.Parse(rotationTime, at); isPrefixed && isSuffixed && err == nil {
			rotated = append(rotated, name)
		}
	}
	for _, name := range rotated[:max(0, len(rotated)-f.keep)] {
		_ = os.Remove(name)
	}
}

// rotationTime is the time in the name of a rotated file.
const rotationTime = "2006-01-02T15-04-05.000000"

// rotatedName is what stands before and after the time in the name of a rotated file.
func rotatedName(path string) (prefix, suffix string) {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-", "-size" + ext
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

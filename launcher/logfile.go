package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// logFile is a file to append to. Once it has limit bytes and its last byte ends a line, or it has 1 MiB more, what
// follows goes to a new one and it is put aside: stdout.log becomes stdout-000001.log, stdout-000002.log and so
// on, so that the bytes are all there in the order of the names, the file itself being the last.
//
// A number, and not the time, is in the name because no two are the same. The files beyond keep are removed
// by who writes, so no goroutine is needed and all is done when Write returns.
type logFile struct {
	path  string
	limit int64 // bytes; 0: none
	keep  int   // files put aside that stay; 0: all
	file  *os.File
	size  int64 // of file
	full  bool  // file is to be put aside before the next byte
	aside []int // numbers of the files put aside that are there, in order
}

// openLogFile opens the file at path or makes it. What it has already counts.
func openLogFile(path string, limit int64, keep int) (*logFile, error) {
	f := &logFile{path: path, limit: limit, keep: keep}
	if err := f.open(); err != nil {
		return nil, err
	}
	if limit == 0 {
		return f, nil
	}
	info, err := f.file.Stat()
	if err == nil {
		f.size = info.Size()
		f.full = f.size >= limit
		f.aside, err = f.findAside()
	}
	if err != nil {
		_ = f.file.Close() // nothing is written yet
		return nil, err
	}
	return f, nil
}

func (f *logFile) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return err
}

// Write writes all of b, be it to several files. After an error the file is of no more use.
func (f *logFile) Write(b []byte) (written int, err error) {
	for written < len(b) {
		if f.full {
			if err := f.putAside(); err != nil {
				return written, err
			}
		}
		rest := b[written:]
		n, err := f.file.Write(rest[:f.share(rest)])
		written += n
		if err != nil {
			return written, err
		}
		f.size += int64(n)
		f.full = f.limit > 0 && f.size >= f.limit && (b[written-1] == '\n' || f.size >= f.limit+maxLine)
	}
	return written, nil
}

// Close closes the file, which is not put aside then.
func (f *logFile) Close() error { return f.file.Close() }

// share returns how much of b goes to this file, which is not full.
func (f *logFile) share(b []byte) int {
	if f.limit == 0 || f.size+int64(len(b)) < f.limit {
		return len(b)
	}
	n := len(b)
	first := max(0, f.limit-f.size-1) // the first byte that can be the last
	if i := bytes.IndexByte(b[first:], '\n'); i >= 0 {
		n = int(first) + i + 1
	}
	return int(min(int64(n), f.limit+maxLine-f.size))
}

// putAside begins a new file.
func (f *logFile) putAside() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	number := 1
	if len(f.aside) > 0 {
		number = f.aside[len(f.aside)-1] + 1
	}
	if err := os.Rename(f.path, f.asidePath(number)); err != nil {
		return err
	}
	f.aside = append(f.aside, number)
	if err := f.open(); err != nil {
		return err
	}
	f.size, f.full = 0, false
	for f.keep > 0 && len(f.aside) > f.keep {
		if err := os.Remove(f.asidePath(f.aside[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f.aside = f.aside[1:]
	}
	return nil
}

func (f *logFile) asidePath(number int) string {
	ext := filepath.Ext(f.path)
	return fmt.Sprintf("%s-%06d%s", strings.TrimSuffix(f.path, ext), number, ext)
}

// findAside returns the numbers of the files that were put aside before.
func (f *logFile) findAside() ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(f.path)
	before := strings.TrimSuffix(filepath.Base(f.path), ext) + "-"
	var numbers []int
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), before)
		name, ext := strings.CutSuffix(name, ext)
		if n, err := strconv.Atoi(name); ours && ext && err == nil && filepath.Base(f.asidePath(n)) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

package launcher

import (
	"bytes"
	"io"
	"sync"
)

// filter is a file for the lines of all workers that contain one of several texts.
type filter struct {
	texts    [][]byte
	failures *failures

	mu    sync.Mutex
	file  io.WriteCloser // nil: given up, or closed
	users int            // streams that have not released it
}

// wants reports whether line is for the filter's file.
func (f *filter) wants(line []byte) bool {
	for _, text := range f.texts {
		if bytes.Contains(line, text) {
			return true
		}
	}
	return false
}

// write appends whole lines to the file. It returns false if that cannot be, some of the lines having been
// written perhaps.
func (f *filter) write(lines []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return false
	}
	if _, err := f.file.Write(lines); err != nil {
		f.failures.add(givenUp, err)
		_ = f.file.Close() // the write error says it all
		f.file = nil
		return false
	}
	return true
}

// release is called once by every stream. The last one closes the file.
func (f *filter) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users > 0 || f.file == nil {
		return
	}
	if err := f.file.Close(); err != nil {
		f.failures.add("log file may lack its end", err)
	}
	f.file = nil
}

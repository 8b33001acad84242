package launcher

import (
	"bytes"
	"sync/atomic"

	"github.com/gorun/gorun/launcher/spool"
)

// filter is a file for the lines of all workers that contain one of several texts.
type filter struct {
	texts [][]byte
	file  *spool.Writer
	users atomic.Int32 // streams that have not released it
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

// release is called once by every stream. The last one lets the file be closed.
func (f *filter) release() {
	if f.users.Add(-1) == 0 {
		f.file.Close()
	}
}

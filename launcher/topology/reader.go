package topology

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// maxFile is the size of the largest file that is read, in bytes. The longest are tables of mounts.
const maxFile = 1 << 20

// reader reads small files of the system. A file that cannot be read counts as empty. A malformed file sets err.
type reader struct {
	root fs.FS
	err  error // the first
}

func (r *reader) failed(name string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("/%s: %w", name, err)
	}
}

// text returns the contents of a file, without white space around them.
func (r *reader) text(name string) string {
	f, err := r.root.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return ""
	}
	if len(b) > maxFile {
		r.failed(name, fmt.Errorf("longer than %d bytes", maxFile))
		return ""
	}
	return strings.TrimSpace(string(b))
}

// list returns the list in a file.
func (r *reader) list(name string) []int {
	list, err := ParseList(r.text(name))
	if err != nil {
		r.failed(name, err)
	}
	return list
}

// number returns the number in a file, or other if there is none.
func (r *reader) number(name string, other int) int {
	s := r.text(name)
	if s == "" {
		return other
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		r.failed(name, fmt.Errorf("%.20q: want a number", s))
		return other
	}
	return n
}

// glob returns the files that a pattern names, sorted as strings.
func (r *reader) glob(pattern string) []string {
	names, err := fs.Glob(r.root, pattern)
	if err != nil {
		r.failed(pattern, err)
	}
	return names
}

func (r *reader) exists(name string) bool {
	_, err := fs.Stat(r.root, name)
	return err == nil
}

// suffixNumber returns the number after prefix in the last element of a path, and false if there is none.
func suffixNumber(name, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(path.Base(name), prefix)
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), ok && err == nil
}

// atoi returns 0 for a text that is not a number.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

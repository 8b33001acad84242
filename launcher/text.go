package launcher

import (
	"bytes"
	"unicode/utf8"
)

// appendValid appends b to dst, with U+FFFD in place of bytes that are not UTF-8: one for each maximal
// subpart of an ill-formed sequence, as Unicode recommends (chapter 3.9) and Python does. All ASCII bytes
// stay.
func appendValid(dst, b []byte) []byte {
	valid := 0 // bytes of b that are
	for valid < len(b) {
		if b[valid] < utf8.RuneSelf {
			valid++
			continue
		}
		r, n := utf8.DecodeRune(b[valid:])
		if r != utf8.RuneError || n > 1 {
			valid += n
			continue
		}
		dst = append(dst, b[:valid]...)
		dst = append(dst, "\uFFFD"...)
		b = b[valid:]
		for n < len(b) && !utf8.FullRune(b[:n+1]) { // b[:n+1] too may begin a rune
			n++
		}
		b, valid = b[n:], 0
	}
	return append(dst, b...)
}

// wholeRunes returns the length of b, which must not be empty, without an incomplete UTF-8 rune at its end. It
// is more than 0.
func wholeRunes(b []byte) int {
	for n := 1; n < utf8.UTFMax && n < len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

// Visible returns what a terminal finally shows of a line: each carriage return starts the line again.
func Visible(line []byte) []byte {
	if bytes.IndexByte(line, '\r') < 0 { // much faster than LastIndexByte
		return line
	}
	line = bytes.TrimRight(line, "\r")
	return line[bytes.LastIndexByte(line, '\r')+1:]
}

const (
	tailLines = 20
	tailBytes = 1024
)

// tail keeps the beginnings of the last lines added, and soon allocates nothing.
type tail struct {
	ring [tailLines][]byte
	n    int // lines seen
}

func (t *tail) add(line []byte) {
	slot := &t.ring[t.n%tailLines]
	*slot = append((*slot)[:0], shorten(line)...)
	t.n++
}

func shorten(line []byte) []byte {
	if len(line) <= tailBytes {
		return line
	}
	return line[:wholeRunes(line[:tailBytes])]
}

// last returns copies of the lines, oldest first: unchanged if raw is true, otherwise as valid UTF-8.
func (t *tail) last(raw bool) []string {
	var out []string
	for i := max(0, t.n-tailLines); i < t.n; i++ {
		line := t.ring[i%tailLines]
		if !raw && !utf8.Valid(line) {
			line = shorten(appendValid(nil, line))
		}
		out = append(out, string(line))
	}
	return out
}

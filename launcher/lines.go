package launcher

import "bytes"

const (
	maxLine  = 1 << 20  // bytes of a line that are held back until its end comes
	keepLine = 64 << 10 // a buffer larger than this is given back after its line
)

// lines cuts a stream of bytes into lines, whatever the pieces in which it comes. A line longer than max
// bytes comes out as several, each but the last of max bytes, so that memory is bounded.
type lines struct {
	max     int
	emit    func(line []byte) // gets each line without its newline; must not keep it
	partial []byte            // a line's beginning
}

func (l *lines) feed(b []byte) {
	for len(b) > 0 {
		n, ends := bytes.IndexByte(b, '\n'), true
		if n < 0 {
			n, ends = len(b), false
		}
		room := l.max - len(l.partial)
		switch {
		case n > room:
			l.complete(b[:room])
			b = b[room:]
		case ends:
			l.complete(b[:n])
			b = b[n+1:]
		default:
			l.partial = append(l.partial, b...)
			return
		}
	}
}

// flush emits what has come of a line whose end has not.
func (l *lines) flush() {
	if len(l.partial) > 0 {
		l.complete(nil)
	}
}

func (l *lines) complete(rest []byte) {
	if len(l.partial) == 0 {
		l.emit(rest)
		return
	}
	l.partial = append(l.partial, rest...)
	l.emit(l.partial)
	if cap(l.partial) > keepLine {
		l.partial = nil
	}
	l.partial = l.partial[:0]
}

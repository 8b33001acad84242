package launcher

import "bytes"

const (
	maxLine  = 1 << 20  // bytes of a line that are held back until its end comes
	keepLine = 64 << 10 // a buffer larger than this is given back after its line
)

// lines cuts a stream of bytes into lines, whatever the pieces in which it arrives. To bound memory, it splits a line
// longer than max bytes into pieces of max bytes, or up to 3 bytes fewer so as not to split a UTF-8 rune. The pieces
// of a progress bar end at carriage returns instead.
type lines struct {
	max     int
	emit    func(line []byte, ended bool) // gets each line without its newline, or a piece, not ended; must not keep it
	bar     func(text []byte)             // gets the newest text that a carriage return ends, before its line does; nil: not wanted
	partial []byte                        // a line's beginning
}

func (l *lines) feed(b []byte) {
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\n')
		room := l.max - len(l.partial)
		switch {
		case n >= 0 && n <= room:
			l.complete(b[:n])
			b = b[n+1:]
		case n < 0 && len(b) <= room:
			l.partial = append(l.partial, b...)
			l.progress(len(b))
			return
		default:
			l.partial = append(l.partial, b[:room]...)
			b = b[room:]
			l.cut()
		}
	}
}

// flush emits the beginning of a line whose end has not come.
func (l *lines) flush() {
	if len(l.partial) > 0 {
		l.emit(l.partial, false)
		l.keep(nil)
	}
}

func (l *lines) complete(rest []byte) {
	if len(l.partial) == 0 {
		l.emit(rest, true)
		return
	}
	l.partial = append(l.partial, rest...)
	l.emit(l.partial, true)
	l.keep(nil)
}

// cut emits the beginning of a line that is too long.
func (l *lines) cut() {
	n := wholeRunes(l.partial)
	if cr := bytes.LastIndexByte(l.partial, '\r'); l.bar != nil && cr >= 0 {
		n = cr + 1
	}
	l.emit(l.partial[:n], false)
	l.keep(l.partial[n:])
}

// keep replaces the line so far with rest, which may be a part of partial.
func (l *lines) keep(rest []byte) {
	if cap(l.partial) > keepLine && len(rest) <= keepLine {
		l.partial = nil
	}
	l.partial = append(l.partial[:0], rest...)
}

// progress shows a progress bar if the last n bytes have completed one.
func (l *lines) progress(n int) {
	if l.bar == nil {
		return
	}
	fresh := len(l.partial) - n
	if cr := bytes.LastIndexByte(l.partial[fresh:], '\r'); cr >= 0 {
		l.bar(Visible(l.partial[:fresh+cr]))
	}
}

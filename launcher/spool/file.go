package spool

import (
	"bytes"
	"io"
	"slices"
)

// longestLine is how much of a line is given back that the file has in part.
const longestLine = 64 << 10

// openFile opens the file of the queue when its goroutine first runs.
func (q *queue) openFile() {
	w := q.file
	if w == nil || w.to != nil || w.refuses {
		return
	}
	var file io.WriteCloser
	var err error
	q.unlocked(func() { file, err = w.file.Open() })
	switch {
	case err != nil && !q.abandoned:
		q.endFile(err)
	case err == nil && q.abandoned: // too late
		q.unlocked(func() { _ = file.Close() })
	case err == nil:
		w.to = file
	}
	close(w.opened)
}

// noteLine records the beginning of the last line if the file has only a part of it.
func (q *queue) noteLine(written []byte) {
	if q.file == nil {
		return
	}
	if end := bytes.LastIndexByte(written, '\n'); end >= 0 {
		q.line, written = q.line[:0], written[end+1:]
	}
	if q.line = append(q.line, written...); len(q.line) > longestLine {
		q.line = nil
	}
}

// endFile stops using the file. Its sources get back, in order, what was not written, with the beginning of a line of
// which the file has only a part.
func (q *queue) endFile(err error) {
	w := q.file
	w.err = err
	q.unlocked(func() { w.file.Failed(err) })
	line := q.line
	q.line = nil
	for untaken := q.takeBack(line); len(untaken) > 0; {
		last := &untaken[len(untaken)-1]
		end := bytes.LastIndexByte(last.text, '\n') + 1
		source, line := last.source, last.text[end:] // of which the end may have been put by now
		last.text = last.text[:end]
		q.unlocked(func() { rescueAll(untaken) })
		if untaken = q.takeBack(line); len(untaken) == 0 && len(line) > 0 {
			q.unlocked(func() { rescueAll([]unwritten{{source, line}}) })
			untaken = q.takeBack(line)
		}
	}
	w.refuses = true
	w.forget()
	if file := w.to; file != nil && !q.abandoned {
		w.to = nil
		q.unlocked(func() { _ = file.(io.Closer).Close() }) // the error that ended its use says it all
	}
}

// An unwritten is what one source has put and a file did not accept.
type unwritten struct {
	source *Source
	text   []byte
}

// takeBack empties the queue. The first text begins with line.
func (q *queue) takeBack(line []byte) (list []unwritten) {
	text, parts := q.takeAll()
	for _, p := range parts {
		if last := len(list) - 1; last >= 0 && list[last].source == p.source {
			list[last].text = append(list[last].text, text[:p.bytes]...)
		} else {
			list = append(list, unwritten{p.source, slices.Concat(line, text[:p.bytes])})
			line = nil
		}
		text = text[p.bytes:]
	}
	return list
}

func rescueAll(list []unwritten) {
	for _, u := range list {
		if u.source.rescue != nil && len(u.text) > 0 {
			u.source.rescue(u.text)
		}
	}
}

// closeFile closes the file of the queue if Close has been called.
func (q *queue) closeFile() {
	w := q.file
	if w == nil || !w.closing || w.refuses {
		return
	}
	w.refuses = true
	file := w.to
	w.to = nil
	var err error
	q.unlocked(func() { err = file.(io.Closer).Close() })
	if err != nil && !q.abandoned {
		q.unlocked(func() { w.file.Unclosed(err) })
	}
	w.forget()
}

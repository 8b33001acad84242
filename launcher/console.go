package launcher

import (
	"io"
	"sync"
	"unicode/utf8"
)

// console serialises the output of all workers of a gang, over stdout and stderr: both are often the same
// terminal. It is given whole lines, so lines never mix, and progress bars, which the next output erases.
type console struct {
	mu       sync.Mutex
	out, err consoleWriter
	raw      bool // bytes pass that are not UTF-8
	warn     func(format string, args ...any)

	barOf  *stream // whose progress bar or question stands in the cursor's line; nil: there is none
	behind bool    // the cursor is at its end, not at its beginning
	bar    []byte  // scratch memory
}

type consoleWriter struct {
	w      io.Writer
	name   string
	warned bool
}

func newConsole(s *Spec) *console {
	return &console{
		out:  consoleWriter{w: orDiscard(s.Stdout), name: "stdout"},
		err:  consoleWriter{w: orDiscard(s.Stderr), name: "stderr"},
		raw:  s.Raw,
		warn: s.warn,
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// write passes whole lines on.
func (c *console) write(which Std, lines []byte) {
	if !c.raw && !utf8.Valid(lines) {
		lines = appendValid(make([]byte, 0, 2*len(lines)), lines)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eraseBar()
	c.put(which, lines)
}

// show makes the cursor's line the progress bar of s: without its end where the terminal is too narrow, since a
// second line would stay behind, and with the cursor at its beginning, where the next output goes.
func (c *console) show(s *stream, text []byte) { c.stand(s, "\x1b[?7l", text, "\x1b[?7h\r", false) }

// ask makes the cursor's line the question of s, behind which somebody may type.
func (c *console) ask(s *stream, text []byte) { c.stand(s, "", text, "", true) }

func (c *console) stand(s *stream, before string, text []byte, after string, behind bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barOf != nil && (c.barOf.which != s.which || c.behind) {
		c.eraseBar()
	}
	c.barOf, c.behind = s, behind
	c.bar = append(c.bar[:0], "\x1b[K"...)
	c.bar = append(c.bar, before...)
	c.bar = append(c.bar, s.prefix...)
	if c.raw {
		c.bar = append(c.bar, text...)
	} else {
		c.bar = appendValid(c.bar, text)
	}
	c.bar = append(c.bar, after...)
	c.put(s.which, c.bar)
}

// erase removes the progress bar if it is that of s.
func (c *console) erase(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barOf == s {
		c.eraseBar()
	}
}

// eraseBar is called with mu held.
func (c *console) eraseBar() {
	if c.barOf == nil {
		return
	}
	erase := "\x1b[K"
	if c.behind {
		erase = "\r\x1b[K"
	}
	c.put(c.barOf.which, []byte(erase))
	c.barOf = nil
}

// put is called with mu held. A writer that fails is warned of once and tried again next time: a full disk
// behind it may have been cleared by then.
func (c *console) put(which Std, b []byte) {
	to := &c.out
	if which == Stderr {
		to = &c.err
	}
	if _, err := to.w.Write(b); err != nil && !to.warned {
		to.warned = true
		c.warn("the workers' output is lost, %s cannot be written: %v", to.name, err)
	}
}

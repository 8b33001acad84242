package launcher

import (
	"io"
	"sync"
	"unicode/utf8"

	"github.com/gorun/gorun/launcher/spool"
)

// A Console is where the output of gangs is shown: stdout and stderr, which are often the same terminal. It gets whole
// lines, so that lines never mix, and progress bars, which the next output erases. Nothing here waits for a write.
type Console struct {
	out, err *spool.Writer
	raw      bool // bytes pass that are not UTF-8

	mu     sync.Mutex
	barOf  *stream // whose progress bar or question stands in the cursor's line; nil: there is none
	behind bool    // the cursor is at its end, not at its beginning
	bar    []byte  // scratch memory
}

// NewConsole returns a Console for the Stdout, Stderr, Spool and Raw of a Spec.
func NewConsole(s *Spec) *Console {
	return &Console{
		out: s.Spool.To(orDiscard(s.Stdout), "stdout"),
		err: s.Spool.To(orDiscard(s.Stderr), "stderr"),
		raw: s.Raw,
	}
}

// console is the one that the gang shares, or else its own.
func (s *Spec) console() *Console {
	if s.Console != nil {
		return s.Console
	}
	return NewConsole(s)
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// source returns a new source for stdout or stderr.
func (c *Console) source(which Std) *spool.Source {
	if which == Stderr {
		return c.err.Source(nil)
	}
	return c.out.Source(nil)
}

// write passes on whole lines.
func (c *Console) write(from *spool.Source, lines []byte) {
	if !c.raw && !utf8.Valid(lines) {
		lines = appendValid(make([]byte, 0, 2*len(lines)), lines)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eraseBar()
	from.Put(lines)
}

// show replaces the cursor's line with the progress bar of s. If the terminal is too narrow, it cuts off the
// end of the bar, since a second line would stay behind. It leaves the cursor at the beginning of the line,
// where the next output goes.
func (c *Console) show(s *stream, text []byte) { c.draw(s, "\x1b[?7l", text, "\x1b[?7h\r", false) }

// ask replaces the cursor's line with a question of s, and leaves the cursor behind it for the answer.
func (c *Console) ask(s *stream, text []byte) { c.draw(s, "", text, "", true) }

func (c *Console) draw(s *stream, before string, text []byte, after string, behind bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barOf != nil && (c.barOf.which != s.which || c.behind) {
		c.eraseBar()
	}
	c.barOf, c.behind = s, behind
	c.bar = append(c.bar[:0], "\x1b[K"...)
	c.bar = append(c.bar, before...)
	c.bar = append(c.bar, s.prefix.Load().painted...)
	if c.raw {
		c.bar = append(c.bar, text...)
	} else {
		c.bar = appendValid(c.bar, text)
	}
	c.bar = append(c.bar, after...)
	s.shown.Put(c.bar)
}

// erase removes the progress bar if it belongs to s.
func (c *Console) erase(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barOf == s {
		c.eraseBar()
	}
}

// eraseBar is called with mu held.
func (c *Console) eraseBar() {
	if c.barOf == nil {
		return
	}
	erase := "\x1b[K"
	if c.behind {
		erase = "\r\x1b[K"
	}
	c.barOf.shown.Put([]byte(erase))
	c.barOf = nil
}

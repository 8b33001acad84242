package launcher

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// console serialises the output of all workers of a gang, over stdout and stderr: both are often the same
// terminal. It is given whole lines only, so lines never mix.
type console struct {
	mu       sync.Mutex
	out, err consoleWriter
	warn     func(format string, args ...any)
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
		warn: s.warn,
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// write passes whole lines on. A writer that fails is warned of once and tried again next time: a full
// disk behind it may have been cleared by then.
func (c *console) write(which Std, lines []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := &c.out
	if which == Stderr {
		to = &c.err
	}
	if _, err := to.w.Write(lines); err != nil && !to.warned {
		to.warned = true
		c.warn("the workers' output is lost, %s cannot be written: %v", to.name, err)
	}
}

// paint returns a worker's prefix in its rank's color.
func paint(prefix string, rank int, color bool) []byte {
	if !color || prefix == "" {
		return []byte(prefix)
	}
	hues := [...]int{36, 33, 32, 35, 34, 96, 93, 92, 95, 94} // not red, which means an error elsewhere
	text := strings.TrimRight(prefix, " ")
	return fmt.Appendf(nil, "\x1b[%dm%s\x1b[0m%s", hues[rank%len(hues)], text, prefix[len(text):])
}

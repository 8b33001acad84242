package launcher

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher/spool"
)

// cut is what lines promises, said in another way.
func cut(b []byte, limit int) []string {
	var out []string
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		for len(line) > limit {
			n := limit
			for part := 1; part < utf8.UTFMax && part < limit; part++ {
				if begins(line[limit-part : limit]) {
					n = limit - part
				}
			}
			out = append(out, string(line[:n]))
			line = line[n:]
		}
		out = append(out, string(line))
	}
	return out
}

// begins reports whether more bytes make b a rune.
func begins(b []byte) bool {
	for _, more := range []string{"\x80", "\x90", "\xa0", "\x80\x80", "\x90\x80", "\xa0\x80", "\x80\x80\x80", "\x90\x80\x80"} {
		if r, n := utf8.DecodeRune(append(slices.Clone(b), more...)); r != utf8.RuneError && n == len(b)+len(more) {
			return true
		}
	}
	return false
}

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		alphabet := rapid.SampledFrom([]string{"a", "b", "\n", "\r", "\x00", "\xff", "é", "€", "🙂", "\xe2", "\xe2\xac", "\xed", "\xa0", "\xf0", "\x90", "\x80"})
		input := []byte(strings.Join(rapid.SliceOfN(alphabet, 0, 80).Draw(t, "input"), ""))
		var got []string
		l := lines{max: limit, emit: func(line []byte, _ bool) { got = append(got, string(line)) }}
		for rest := input; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "chunk")
			l.feed(rest[:n])
			rest = rest[n:]
			if len(l.partial) > limit {
				t.Fatalf("holds back %d bytes, more than %d", len(l.partial), limit)
			}
		}
		l.flush()
		l.flush() // nothing twice
		if want := cut(input, limit); !slices.Equal(got, want) {
			t.Fatalf("%q with limit %d\n got %q\nwant %q", input, limit, got, want)
		}
	})
}

func TestTailKeepsTheLastLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.StringN(0, 30, -1), 0, 3*tailLines).Draw(t, "lines")
		var tl tail
		for _, line := range all {
			tl.add([]byte(line))
		}
		want := all[max(0, len(all)-tailLines):]
		if got := tl.last(true); !slices.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

func TestTailBoundsLines(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		raw        bool
	}{
		{strings.Repeat("x", 10*tailBytes), strings.Repeat("x", tailBytes), false},
		{"x" + strings.Repeat("é", tailBytes), "x" + strings.Repeat("é", tailBytes/2-1), false},
		{strings.Repeat("\xff", tailBytes), strings.Repeat("\uFFFD", tailBytes/3), false},
		{strings.Repeat("\xff", 2*tailBytes), strings.Repeat("\xff", tailBytes), true},
	} {
		var tl tail
		tl.add([]byte(tt.line))
		if got := tl.last(tt.raw); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%.10q...: %d bytes, want %d", tt.line, len(strings.Join(got, "")), len(tt.want))
		}
	}
}

func TestLinesDoNotAllocate(t *testing.T) {
	chunk := bytes.Repeat([]byte("a line of a worker\n"), 100)
	o := newOutput(&Spec{Spool: spool.New()})
	s := newStream(Stderr, nil, o)
	s.onConsole = true
	s.prefix.Store(&prefixes{painted: paint("[3] ", 3, true)})
	for range 3 { // warms the buffers
		s.take(chunk)
		written(o)
	}
	if n := testing.AllocsPerRun(100, func() { s.take(chunk) }); n > 1 { // the goroutine that writes
		t.Errorf("%v allocations for 100 lines", n)
	}
}

// written waits until everything in the spool of an output is written.
func written(o *output) {
	o.spec.Spool.Drain(spool.Timeouts{Still: time.Minute, Total: time.Minute}, nil)
}

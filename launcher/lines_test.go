package launcher

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// cut is what lines promises, said in another way.
func cut(b []byte, limit int) []string {
	var out []string
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		b = rest
		for len(line) > limit {
			out = append(out, string(line[:limit]))
			line = line[limit:]
		}
		out = append(out, string(line))
	}
	return out
}

func TestLinesAreTheSameHoweverTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		alphabet := rapid.SampledFrom([]byte("ab\n\r\x00\xff"))
		input := rapid.SliceOfN(alphabet, 0, 80).Draw(t, "input")
		var got []string
		l := lines{max: limit, emit: func(line []byte) { got = append(got, string(line)) }}
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
		if got := tl.last(); !slices.Equal(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

func TestTailBoundsLines(t *testing.T) {
	var tl tail
	tl.add([]byte(strings.Repeat("x", 10*tailBytes)))
	if got := tl.last(); len(got) != 1 || len(got[0]) != tailBytes {
		t.Errorf("%d lines", len(got))
	}
}

func TestLinesDoNotAllocate(t *testing.T) {
	chunk := bytes.Repeat([]byte("a line of a worker\n"), 100)
	s := newStream(Stderr, nil, streamRoute{console: true}, paint("[3] ", 3, true), newConsole(&Spec{}))
	s.take(chunk) // warms the buffers
	if n := testing.AllocsPerRun(100, func() { s.take(chunk) }); n > 0 {
		t.Errorf("%v allocations for 100 lines", n)
	}
}

package launcher

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher/spool"
)

// terminal knows as much of a terminal as progress bars need.
type terminal struct {
	rows   []string // finished lines
	row    []byte   // the cursor's
	col    int
	noWrap bool
	fault  string
}

const columns = 16

func (s *terminal) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := 1
		switch {
		case bytes.HasPrefix(rest, []byte("\x1b[K")):
			n = 3
			s.row = s.row[:min(s.col, len(s.row))]
		case bytes.HasPrefix(rest, []byte("\x1b[?7")):
			n = 5
			s.noWrap = rest[4] == 'l'
		case rest[0] == '\n':
			s.rows = append(s.rows, string(s.row))
			s.row, s.col = nil, 0
		case rest[0] == '\r':
			s.col = 0
		case s.noWrap && s.col == columns:
		default:
			if s.col < len(s.row) {
				s.fault = fmt.Sprintf("%q is written over %q", rest, s.row)
			}
			s.row = append(s.row[:s.col], rest[0])
			s.col++
		}
		rest = rest[n:]
	}
	if s.noWrap {
		s.fault = "lines are left without wrapping"
	}
	if s.col == 0 && len(s.row) > columns {
		s.fault = fmt.Sprintf("the bar %q takes two lines", s.row)
	}
	return len(b), nil
}

// Whatever workers write, in one gang or two that share a console, a terminal has their finished lines in the end, and nothing of progress bars.
func TestProgressBarsLeaveNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		screen := &terminal{}
		o := newOutput(&Spec{Spool: spool.New(), Live: true, Stdout: screen, Stderr: screen, Workers: []WorkerSpec{{}, {Rank: 1}}})
		another := newOutput(&Spec{Spool: o.spec.Spool, Live: true, Console: o.console})
		var streams []*stream
		for i := range 3 {
			s := newStream([]Std{Stdout, Stderr, Stdout}[i], nil, []*output{o, o, another}[i])
			s.onConsole = true
			s.prefix.Store(&prefixes{painted: fmt.Appendf(nil, "[%d] ", i)})
			s.lines.max = 64
			streams = append(streams, s)
		}
		var wrote [3]string
		piece := rapid.SampledFrom([]string{"\r", "\r", "\n", "\r\n", "half", "done", "a bar that is longer than 16"})
		for range rapid.IntRange(0, 30).Draw(t, "writes") {
			i := rapid.IntRange(0, 2).Draw(t, "stream")
			text := strings.Join(rapid.SliceOfN(piece, 1, 3).Draw(t, "text"), "")
			wrote[i] += text
			streams[i].take([]byte(text))
		}
		for _, s := range streams {
			s.end()
		}
		written(o)
		if screen.fault != "" || len(screen.row) > 0 {
			t.Fatalf("%s; last line %q", screen.fault, screen.row)
		}
		for i, text := range wrote {
			prefix := fmt.Sprintf("[%d] ", i)
			var want, got string
			for line := range strings.SplitAfterSeq(text, "\n") {
				if line == "" || !strings.HasSuffix(line, "\n") && strings.HasSuffix(line, "\r") {
					continue
				}
				parts := strings.FieldsFunc(line, func(r rune) bool { return r == '\r' || r == '\n' })
				want += append([]string{""}, parts...)[len(parts)]
			}
			for _, row := range screen.rows {
				if after, ok := strings.CutPrefix(row, prefix); ok {
					got += after
				}
			}
			if strings.ReplaceAll(got, "\n", "") != want && len(text) < 64 {
				t.Fatalf("of %q the terminal shows %q, want %q", text, got, want)
			}
		}
	})
}

func TestProgressBars(t *testing.T) {
	const off, on = "\x1b[K\x1b[?7l", "\x1b[?7h\r"
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"shown at once", []string{"10%\r"}, off + "> 10%" + on + "\x1b[K"},
		{"anew", []string{"10%\r", "9%\r"}, off + "> 10%" + on + off + "> 9%" + on + "\x1b[K"},
		{"only the newest", []string{"1%\r2%\r3%\r4"}, off + "> 3%" + on + "\x1b[K> 4\n"},
		{"becomes a line", []string{"10%\r", "done\n"}, off + "> 10%" + on + "\x1b[K> done\n"},
		{"ends as it is", []string{"99%\r", "100%\r\n"}, off + "> 99%" + on + "\x1b[K> 100%\n"},
		{"return first", []string{"\r1%", "\r2%"}, off + "> 1%" + on + "\x1b[K> 2%\n"},
		{"after a line", []string{"start\n1%\r"}, "> start\n" + off + "> 1%" + on + "\x1b[K"},
		{"not UTF-8", []string{"\xff\r"}, off + "> \uFFFD" + on + "\x1b[K"},
		{"none", []string{"one\r\n", "\r\n", "two"}, "> one\n> \n> two\n"},
	}
	for _, tt := range tests {
		var got bytes.Buffer
		o := newOutput(&Spec{Spool: spool.New(), Live: true, Stderr: &got})
		s := newStream(Stderr, nil, o)
		s.onConsole = true
		s.prefix.Store(&prefixes{painted: []byte("> ")})
		for _, b := range tt.writes {
			s.take([]byte(b))
		}
		s.end()
		written(o)
		if got.String() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got.String(), tt.want)
		}
	}
}

func TestProgressBarsOnTwoTerminals(t *testing.T) {
	var out, errs bytes.Buffer
	o := newOutput(&Spec{Spool: spool.New(), Live: true, Stdout: &out, Stderr: &errs})
	first, second := newStream(Stdout, nil, o), newStream(Stderr, nil, o)
	first.onConsole, second.onConsole = true, true
	first.take([]byte("1%\r"))
	second.take([]byte("2%\r"))
	first.take([]byte("line\n"))
	written(o)
	for _, got := range []string{strings.TrimSuffix(out.String(), "line\n"), errs.String()} {
		if !strings.HasSuffix(got, "%\x1b[?7h\r\x1b[K") {
			t.Errorf("got %q, want the bar to be erased", got)
		}
	}
}

func TestProgressBarOfMoreThanALine(t *testing.T) {
	screen := &terminal{}
	o := newOutput(&Spec{Spool: spool.New(), Live: true, Stderr: screen})
	s := newStream(Stderr, nil, o)
	s.onConsole = true
	for i := range 3 * maxLine / 15 { // of a long training
		s.take(fmt.Appendf(nil, "%13d%%\r", i))
	}
	s.take([]byte("done\n"))
	s.end()
	written(o)
	if want := []string{"done"}; !slices.Equal(screen.rows, want) || len(screen.row) > 0 {
		t.Errorf("the terminal shows %q and %q, want %q", screen.rows, screen.row, want)
	}
	if got := s.last(); got[len(got)-1] != "done" {
		t.Errorf("tail %q", got)
	}
}

package configfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/testing/testkit"
)

func TestParse(t *testing.T) {
	one := func(name, text string) []Setting { return []Setting{{name, 1, Text, []Item{{1, text}}}} }
	for text, want := range map[string][]Setting{
		"":                        nil,
		"# nothing yet\n":         nil,
		"nnodes: 2":               one("nnodes", "2"),
		"nproc_per_node: auto":    one("nproc-per-node", "auto"),
		"nnodes: 2:4 # a comment": one("nnodes", "2:4"),
		"a: 1\n...\n":             one("a", "1"),
		"\ufeffa: 1\r\n":          one("a", "1"),
		"a: ''":                   one("a", ""),
		"a: 'null'":               one("a", "null"),
		"a: '*.py'":               one("a", "*.py"),
		`a: "tab\t"`:              one("a", "tab\t"),
		// What YAML reads as a number, a truth or a time is the text that is there.
		"a: 010": one("a", "010"), "a: 1_0": one("a", "1_0"), "a: 1e3": one("a", "1e3"), "a: 1:30": one("a", "1:30"),
		"a: Yes": one("a", "Yes"), "a: 2026-11-23": one("a", "2026-11-23"),
		"a: |\n  one\n  two\n":                 one("a", "one\ntwo\n"),
		"a: [x, 1]":                            {{"a", 1, List, []Item{{1, "x"}, {1, "1"}}}},
		"a: []":                                {{"a", 1, List, nil}},
		"a:\n- x\n\n- 'y z'\n":                 {{"a", 1, List, []Item{{2, "x"}, {4, "y z"}}}},
		"env:\n  B: 1\n  A: x=y\n\nc: {D: ''}": {{"env", 1, Map, []Item{{2, "B=1"}, {3, "A=x=y"}}}, {"c", 5, Map, []Item{{5, "D="}}}},
		"{a: 1}":                               one("a", "1"),
	} {
		if got, err := Parse("f", strings.NewReader(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\na: 2":            `f:2: "a" is there twice: first in line 1`,
		"a-b: 1\n\na_b: 2":      `f:3: "a-b" is there twice: first in line 1`,
		"env:\n  A: 1\n  A: 1":  `f:3: "A" is there twice: first in line 2`,
		"just text":             `f:1: want the name of a flag, a colon and its value in each line, as in nnodes: 2`,
		"\n- a":                 `f:2: want the name of a flag, a colon and its value in each line, as in nnodes: 2`,
		"x: 1\na:":              `f:2: a value is missing: write one, or "" for an empty text`,
		"a:\n- x\n-\n":          `f:3: a value is missing: write one, or "" for an empty text`,
		"a: null":               `f:1: null is no value: leave the line out, or write "null" for the text`,
		"env:\n  A: ~":          `f:2: ~ is no value: leave the line out, or write "~" for the text`,
		"a: {b: {c: 1}}":        `f:1: want a text for "b"`,
		"a:\n- [x]":             `f:2: want a text in each item of "a"`,
		"a:\n- name: x":         `f:2: want a text in each item of "a"`,
		"[a, b]: c":             `f:1: want the name of a flag`,
		"a: {[b]: c}":           `f:1: want a name`,
		"a: {b=c: d}":           `f:1: "b=c": a name in "a" cannot have an equals sign`,
		`a: "x\0"`:              `f:1: a NUL byte cannot be in a value`,
		"a: &x 1\nb: *x":        `f:1: a config file has no anchors or aliases: write the value out, or put it in quotes if it begins with & or *`,
		"&x a: 1":               `f:1: a config file has no anchors or aliases: write the value out, or put it in quotes if it begins with & or *`,
		"&x {a: 1}":             `f:1: a config file has no anchors or aliases: write the value out, or put it in quotes if it begins with & or *`,
		"a:\n- 1\n- &x [1, *x]": `f:3: a config file has no anchors or aliases: write the value out, or put it in quotes if it begins with & or *`,
		"a: !!int 1":            `f:1: a config file has no tags: leave "!!int" out, or put the value in quotes`,
		"a:\n- !x y":            `f:2: a config file has no tags: leave "!x" out, or put the value in quotes`,
		"a: 1\n---\nb: 2":       `f:2: a second document begins here: want one`,
		"a: 1\n---\n":           `f:2: a second document begins here: want one`,
		"a: 1\n---\n[":          `f:3: this is not YAML: did not find expected node content`,
		"a: b: c":               `f:1: this is not YAML: mapping values are not allowed in this context`,
		"a: 1\nb: c: d":         `f:2: this is not YAML: mapping values are not allowed in this context`,
		"a: 1\nb: [x] y":        `f:2: this is not YAML: did not find expected key`,
		"a: 1\nb: [x\n":         `f:2: this is not YAML: did not find expected ',' or ']'`,
		"a: [${x}] ":            `f:1: this is not YAML: did not find expected ',' or ']'`,
		"a: 'x\n":               `f:1: this is not YAML: found unexpected end of stream`,
		"\ta: 1":                `f:1: this is not YAML: found character that cannot start any token`,
		"a: 1\nb: @c":           `f:2: this is not YAML: found character that cannot start any token`,
		"a: 1\n\n%x":            `f:3: this is not YAML: found unknown directive name`,
		"a: *x":                 `f: this is not YAML: unknown anchor 'x' referenced`,
		"a: 1\nb: \x01":         `f: this is not YAML: control characters are not allowed`,
		"a: \xff":               `f: the file is not UTF-8`,
	} {
		if got, err := Parse("f", strings.NewReader(text)); err == nil || err.Error() != want || got != nil {
			t.Errorf("%q:\n%+v, %v\nwant %s", text, got, err, want)
		}
	}
	broken := errors.New("the disk is broken")
	if _, err := Parse("f", iotest.ErrReader(broken)); !errors.Is(err, broken) || err.Error() != "f: the disk is broken" {
		t.Errorf("a reader that fails: %v", err)
	}
}

// TestLargeFiles: the longest file that is allowed takes a moment, whatever is in it, and a longer one is not read to its end.
func TestLargeFiles(t *testing.T) {
	var names strings.Builder
	for i := 0; names.Len() < MaxSize-20; i++ {
		fmt.Fprintf(&names, "k%d: 1\n", i)
	}
	repeated := func(text string) string { return strings.Repeat(text, MaxSize/len(text)) }
	for name, text := range map[string]string{
		"names": names.String(), "comments": repeated("# x\n"), "lists": repeated("["), "flow": repeated("{} , "), "dashes": repeated("- "),
		"anchors": repeated("&a "), "blanks": repeated(" "), "colons": repeated("a:"), "questions": repeated("? "), "documents": repeated("---\n"),
		"bomb": "a: &a [x]\n" + repeated("b: [*a, *a]\n")[:MaxSize-20],
	} {
		start := time.Now()
		if _, err := Parse("f", strings.NewReader(text)); err != nil && len(err.Error()) > 200 {
			t.Errorf("%s: %.300s", name, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
	endless := &counter{}
	if _, err := Parse("f", endless); err == nil || err.Error() != "f: the file is longer than 1048576 bytes" || endless.n > 2*MaxSize {
		t.Errorf("an endless file: %v, after %d bytes", err, endless.n)
	}
}

type counter struct{ n int }

func (c *counter) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '#'
	}
	c.n += len(b)
	return len(b), nil
}

// TestEveryText: whatever text a file has in quotes, it is read as that.
func TestEveryText(t *testing.T) {
	text := rapid.StringMatching(`[ -~\n\t\x{A0}-\x{300}\x{2028}\x{1F600}]*`)
	rapid.Check(t, func(t *rapid.T) {
		want, list, value := text.Draw(t, "text"), rapid.SliceOf(text).Draw(t, "list"), text.Draw(t, "value")
		file, err := json.Marshal(map[string]any{"a": want, "b": list, "c": map[string]string{"K": value}})
		if err != nil {
			t.Fatal(err)
		}
		if list == nil {
			file, _ = json.Marshal(map[string]any{"a": want, "b": []string{}, "c": map[string]string{"K": value}})
		}
		got, err := Parse("f", strings.NewReader(string(file)))
		if err != nil || len(got) != 3 || got[0].Items[0].Text != want || len(got[1].Items) != len(list) || got[2].Items[0].Text != "K="+value {
			t.Fatalf("%s: %+v, %v", file, got, err)
		}
		for i, item := range got[1].Items {
			if item.Text != list[i] {
				t.Fatalf("%s: %+v", file, got)
			}
		}
	})
}

// FuzzParse gives hostile files: no panic, little memory, and an error is a line.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"nnodes: 2\nenv:\n  A: 1\n", "a: [x, 'y', \"z\\n\"]", "a: |\n  x\n", "a: >-\n  x\n  y", "a: &x\nb: *x\n", "<<: {a: 1}", "? a\n: b\n", "%YAML 1.1\n---\na: !!str b\n...\n",
		"a: 1\n---\nb", "{a: {b: c}, d: []}", "a: ~", "# c\n\na: 'b' # c",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		var settings []Setting
		var err error
		testkit.AllocatesAtMost(t, 2000*len(text)+1<<18, func() { settings, err = Parse("f", strings.NewReader(string(text))) })
		if err != nil {
			if said := err.Error(); settings != nil || !strings.HasPrefix(said, "f:") || strings.ContainsAny(said, "\n\r\x00") || len(said) > 500 {
				t.Errorf("%+v, %q", settings, said)
			}
			return
		}
		names := make(map[string]bool)
		for _, s := range settings {
			if names[s.Name] || strings.Contains(s.Name, "_") || s.Line < 1 || s.Form == Text && len(s.Items) != 1 {
				t.Errorf("%+v", s)
			}
			names[s.Name] = true
			for _, item := range s.Items {
				if item.Line < 1 || strings.ContainsRune(item.Text, 0) || s.Form == Map && !strings.Contains(item.Text, "=") {
					t.Errorf("%s: %+v", s.Name, item)
				}
			}
		}
	})
}

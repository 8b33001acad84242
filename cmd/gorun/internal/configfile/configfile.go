// Package configfile reads a config file: YAML that maps the names of flags to their values. It does not know which flags there are.
//
//	nnodes: 2
//	local-ranks-filter: [0, 2]
//	env:
//	  NCCL_DEBUG: INFO
//
// Every value is a text, just as the file has it: 1e3 and yes are not read as a number or a truth. A file cannot refer to other parts of
// itself, so that it is never longer than it looks.
package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the greatest length of a config file in bytes.
const MaxSize = 1 << 20

// A Setting is what the file says of one name.
type Setting struct {
	Name  string // with dashes where the file may have underscores
	Line  int    // from 1
	Form  Form
	Items []Item // one if it is a text
}

// Form says how a value is written.
type Form int

// The forms of a value.
const (
	Text Form = iota // name: value
	List             // name: [value, value], or each in a line of its own
	Map              // name: {key: value}: each item is key=value
)

// An Item is a value, or a part of one.
type Item struct {
	Line int // from 1
	Text string
}

// Parse reads a config file. Each error is one line, which begins with the name of the file and, if it is known, the number of the line.
func Parse(file string, r io.Reader) ([]Setting, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case len(text) > MaxSize:
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", file, MaxSize)
	case !utf8.Valid(text):
		return nil, fmt.Errorf("%s: the file is not UTF-8", file)
	}
	settings, err := parse(text)
	if wrong, ok := errors.AsType[*lineError](err); ok && wrong.line > 0 {
		last := 1 + bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) // an error at the end may count one more
		return nil, fmt.Errorf("%s:%d: %s", file, min(wrong.line, last), wrong.what)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return settings, nil
}

// A lineError says what is wrong in a line; 0: in the file.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return e.what }

func wrongAt(at *yaml.Node, format string, args ...any) error {
	return &lineError{at.Line, fmt.Sprintf(format, args...)}
}

func parse(text []byte) (settings []Setting, err error) {
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil // nothing but comments
	case err != nil:
		return nil, syntaxError(err)
	}
	top := document.Content[0]
	if err := check(top); err != nil {
		return nil, err
	}
	if top.Kind != yaml.MappingNode {
		return nil, wrongAt(top, "want the name of a flag, a colon and its value in each line, as in nnodes: 2")
	}
	lines := make(map[string]int)
	for i := 0; i < len(top.Content); i += 2 {
		s, err := setting(top.Content[i], top.Content[i+1])
		if err == nil {
			err = once(lines, s.Name, top.Content[i])
		}
		if err != nil {
			return nil, err
		}
		settings = append(settings, s)
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
		return settings, nil
	case err != nil:
		return nil, syntaxError(err)
	default:
		return nil, wrongAt(&second, "a second document begins here: want one")
	}
}

const (
	lineless = `^(control characters|unknown anchor)`
	// fromZero matches the errors whose lines the library counts from 0: those of its parser, and none of its scanner.
	fromZero = `^(did not find expected (<|'|key|node content)|found (undefined tag handle|duplicate|incompatible))`
)

// syntaxError returns an error of the library with its line, counted from 1. The library leaves out a 0.
func syntaxError(err error) error {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if number, rest, ok := strings.Cut(strings.TrimPrefix(what, "line "), ": "); ok && strings.HasPrefix(what, "line ") {
		line, _ = strconv.Atoi(number)
		what = rest
	}
	matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(what) }
	if matches(fromZero) || line == 0 && !matches(lineless) {
		line++
	}
	return &lineError{line, "this is not YAML: " + what}
}

func setting(key, value *yaml.Node) (s Setting, err error) {
	name, err := scalar(key, "the name of a flag")
	if err != nil {
		return s, err
	}
	s = Setting{Name: strings.ReplaceAll(name, "_", "-"), Line: key.Line}
	if err := check(value); err != nil {
		return s, err
	}
	switch value.Kind {
	case yaml.SequenceNode:
		s.Form = List
		for _, item := range value.Content {
			text, err := scalar(item, "a text in each item of "+Shortened(s.Name))
			if err != nil {
				return s, err
			}
			s.Items = append(s.Items, Item{item.Line, text})
		}
	case yaml.MappingNode:
		s.Form = Map
		s.Items, err = entries(value, s.Name)
	default:
		s.Items = []Item{{value.Line, value.Value}}
	}
	return s, err
}

// entries returns each entry of a map as key=value.
func entries(value *yaml.Node, name string) (items []Item, err error) {
	lines := make(map[string]int)
	for i := 0; i < len(value.Content); i += 2 {
		key, err := scalar(value.Content[i], "a name")
		if err != nil {
			return nil, err
		}
		text, err := scalar(value.Content[i+1], "a text for "+Shortened(key))
		if err != nil {
			return nil, err
		}
		at := value.Content[i]
		if strings.Contains(key, "=") {
			return nil, wrongAt(at, "%s: a name in %s cannot have an equals sign", Shortened(key), Shortened(name))
		}
		if err := once(lines, key, at); err != nil {
			return nil, err
		}
		items = append(items, Item{at.Line, key + "=" + text})
	}
	return items, nil
}

// once returns an error if there already is a line with this name.
func once(lines map[string]int, name string, at *yaml.Node) error {
	if first, twice := lines[name]; twice {
		return wrongAt(at, "%s is there twice: first in line %d", Shortened(name), first)
	}
	lines[name] = at.Line
	return nil
}

// scalar returns a text. want says what else the file would have there.
func scalar(n *yaml.Node, want string) (string, error) {
	if err := check(n); err != nil {
		return "", err
	}
	if n.Kind != yaml.ScalarNode {
		return "", wrongAt(n, "want %s", want)
	}
	return n.Value, nil
}

// check refuses what has no place in a config file.
func check(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return wrongAt(n, "a config file has no anchors or aliases: write the value out, or put it in quotes if it begins with & or *")
	case n.Style&yaml.TaggedStyle != 0:
		return wrongAt(n, "a config file has no tags: leave %s out, or put the value in quotes", Shortened(n.Tag))
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && n.Value == "":
		return wrongAt(n, `a value is missing: write one, or "" for an empty text`)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return wrongAt(n, "%s is no value: leave the line out, or write \"%s\" for the text", n.Value, n.Value)
	case n.Kind == yaml.ScalarNode && strings.ContainsRune(n.Value, 0):
		return wrongAt(n, "a NUL byte cannot be in a value")
	}
	return nil
}

// Shortened returns text in quotes for an error: no more than its first 40 bytes.
func Shortened(text string) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

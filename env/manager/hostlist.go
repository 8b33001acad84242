package manager

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on what a list means. A list beyond them is an error.
const (
	MaxHosts    = 65536     // names or counts in a list
	MaxHostName = 253       // bytes of a name, as in DNS (RFC 1035)
	MaxList     = 256 << 10 // bytes of a list. Linux allows 128 KiB for an environment variable
)

// maxDigits keeps every number of a range, and the one after it, below the limits of uint64.
const maxDigits = 18

// ExpandHosts returns the hosts of list, in its order: n[1-2],m means n1, n2, m, and r[1-2]n[1-2] means r1n1, r1n2, r2n1, r2n2.
// Slurm writes such lists in SLURM_JOB_NODELIST and SLURM_STEP_NODELIST, and Flux in its attribute hostlist. Both use the syntax of
// LLNL's hostlist library (pdsh): names are separated by commas, brackets stand for numbers and ranges of numbers, and a name may have
// several. A number with leading zeros says how wide the numbers of its range are. ExpandHosts returns duplicates as they are. Each name
// is one that CheckHostName accepts. The error says at which character of list the problem is.
func ExpandHosts(list string) ([]string, error) {
	if err := checkLength(list); err != nil {
		return nil, err
	}
	var hosts []string
	for at := 0; ; {
		name, err := parsePattern(list, at)
		if err == nil && len(hosts)+name.count > MaxHosts {
			err = problem(list, at, "the list has more than %d hosts", MaxHosts)
		}
		if err != nil {
			return nil, err
		}
		if hosts, err = appendNames(hosts, name.parts, make([]byte, 0, MaxHostName)); err != nil {
			return nil, problem(list, at, "%v", err)
		}
		if name.end == len(list) {
			return hosts, nil
		}
		at = name.end + 1
	}
}

// CheckHostName returns an error if name cannot be that of a host: if it is empty or longer than MaxHostName, if it begins with a hyphen, which
// programs such as ssh take for an option, or if it has other characters than ASCII letters, digits, dots, hyphens and underscores.
func CheckHostName(name string) error {
	switch bad := notInName(name); {
	case name == "":
		return errors.New("a host has no name")
	case len(name) > MaxHostName:
		return fmt.Errorf("the name %s is longer than %d bytes", Shorten(name), MaxHostName)
	case name[0] == '-':
		return fmt.Errorf("the name %s begins with a hyphen", Shorten(name))
	case bad >= 0:
		return badCharacter(name[bad:])
	}
	return nil
}

// notInName returns the index of the first character of text that cannot be in a name, or -1.
func notInName(text string) int {
	return strings.IndexFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
	})
}

func badCharacter(text string) error {
	r, _ := utf8.DecodeRuneInString(text)
	return fmt.Errorf("%q cannot be in the name of a host", r)
}

// A pattern is a name of a list with its brackets.
type pattern struct {
	parts []part
	count int // of the names that it stands for
	end   int // where it ends in the list: at a comma, or at the list's end
}

// A part of a pattern is text, or a bracket's ranges.
type part struct {
	text   string
	ranges []span
}

// A span is the numbers from low to high, written with at least width digits.
type span struct {
	low, high uint64
	width     int
}

// parsePattern parses the pattern that begins at a byte of list.
func parsePattern(list string, at int) (pattern, error) {
	p, length := pattern{count: 1}, 0
	for p.end = at; p.end < len(list) && list[p.end] != ','; {
		rest := list[p.end:]
		if rest[0] != '[' {
			text := rest
			if i := strings.IndexAny(rest, "[],"); i >= 0 {
				text = rest[:i]
			}
			if text == "" {
				return pattern{}, problem(list, p.end, `"]" without "["`)
			}
			if i := notInName(text); i >= 0 {
				return pattern{}, problem(list, p.end+i, "%v", badCharacter(text[i:]))
			}
			p.parts, p.end, length = append(p.parts, part{text: text}), p.end+len(text), length+len(text)
		} else {
			ranges, end, err := parseBracket(list, p.end)
			if err != nil {
				return pattern{}, err
			}
			count := 0
			for _, r := range ranges {
				if count += r.count(); count > MaxHosts {
					return pattern{}, problem(list, p.end, "the brackets mean more than %d hosts", MaxHosts)
				}
			}
			if p.count *= count; p.count > MaxHosts {
				return pattern{}, problem(list, p.end, "with these brackets, the name means more than %d hosts", MaxHosts)
			}
			p.parts, p.end, length = append(p.parts, part{ranges: ranges}), end, length+1
		}
		if length > MaxHostName {
			return pattern{}, problem(list, at, "the name is longer than %d bytes", MaxHostName)
		}
	}
	if p.end == at {
		return pattern{}, problem(list, at, "a host has no name")
	}
	return p, nil
}

// parseBracket parses the ranges in the bracket that opens at a byte of list. The end is behind its "]".
func parseBracket(list string, open int) (ranges []span, end int, err error) {
	length := strings.IndexByte(list[open:], ']')
	if length < 0 {
		return nil, 0, problem(list, open, `"[" without "]"`)
	}
	at := open + 1
	for text := range strings.SplitSeq(list[at:open+length], ",") {
		r, err := parseSpan(text)
		if err != nil {
			return nil, 0, problem(list, at, "%v", err)
		}
		ranges, at = append(ranges, r), at+len(text)+1
	}
	return ranges, open + length + 1, nil
}

// parseSpan parses a number, or two with a hyphen between them.
func parseSpan(text string) (span, error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	low, ok1 := number(from)
	high, ok2 := number(to)
	switch {
	case !ok1 || !ok2:
		return span{}, fmt.Errorf("%s in brackets is not a number or a range such as 1-16, of at most %d digits each", Shorten(text), maxDigits)
	case high < low:
		return span{}, fmt.Errorf("the range %s ends before it begins", text)
	case padded(to) && len(to) != len(from):
		return span{}, fmt.Errorf("the numbers of the range %s have leading zeros for different widths", text)
	case padded(from):
		return span{low, high, len(from)}, nil
	default:
		return span{low, high, 1}, nil
	}
}

// number returns the value of decimal digits.
func number(digits string) (uint64, bool) {
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && len(digits) <= maxDigits
}

func padded(digits string) bool { return len(digits) > 1 && digits[0] == '0' }

// count returns how many numbers a span has, or MaxHosts+1 if there are more.
func (s span) count() int { return int(min(s.high-s.low, MaxHosts)) + 1 }

// appendNames appends the names that begin with prefix and go on with parts.
func appendNames(hosts []string, parts []part, prefix []byte) ([]string, error) {
	switch {
	case len(prefix) > MaxHostName:
		return nil, fmt.Errorf("the name is longer than %d bytes", MaxHostName)
	case len(parts) == 0:
		name := string(prefix)
		return append(hosts, name), CheckHostName(name)
	case parts[0].ranges == nil:
		return appendNames(hosts, parts[1:], append(prefix, parts[0].text...))
	}
	var err error
	for _, r := range parts[0].ranges {
		for n := r.low; n <= r.high; n++ {
			if hosts, err = appendNames(hosts, parts[1:], r.append(prefix, n)); err != nil {
				return nil, err
			}
		}
	}
	return hosts, nil
}

// append writes a number of the span behind prefix.
func (s span) append(prefix []byte, n uint64) []byte {
	digits := strconv.FormatUint(n, 10)
	for range s.width - len(digits) {
		prefix = append(prefix, '0')
	}
	return append(prefix, digits...)
}

func checkLength(list string) error {
	if len(list) > MaxList {
		return fmt.Errorf("the list %s has %d bytes; at most %d are allowed", Shorten(list), len(list), MaxList)
	}
	return nil
}

// problem returns an error about what begins at a byte of list.
func problem(list string, at int, format string, args ...any) error {
	return fmt.Errorf("%s, character %d: %s", Shorten(list), at+1, fmt.Sprintf(format, args...))
}

// Shorten quotes the beginning of a text, for an error.
func Shorten(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

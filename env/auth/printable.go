package auth

import (
	"strings"
	"unicode"
)

// Printable is text that another process said, as a terminal may get it: in one line, without control characters.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, text)
}

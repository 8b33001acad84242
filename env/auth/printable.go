package auth

import (
	"strings"
	"unicode"
)

// Printable makes text of another process safe to print: it is one line then, without control characters.
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

package manager

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// variables reads variables, and keeps the first problem.
type variables struct {
	lookup func(string) (string, bool)
	err    error
}

// has reports whether a variable is set, and not empty.
func (v *variables) has(name string) bool { return v.text(name) != "" }

// text returns the value of a variable; empty: it is not set.
func (v *variables) text(name string) string {
	if value, ok := v.lookup(name); ok {
		return value
	}
	return ""
}

const maxNumber = 1<<31 - 1

// required returns the value of a variable that must be set.
func (v *variables) required(name string) string {
	text, ok := v.lookup(name)
	if !ok && v.err == nil {
		v.err = fmt.Errorf("%s is not set, though other variables of the same manager are", name)
	}
	return text
}

// number returns the value of a variable that must be set.
func (v *variables) number(name string) int {
	text := v.required(name)
	n, err := strconv.Atoi(text)
	switch {
	case v.err != nil:
	case err != nil || n < 0 || n > maxNumber:
		v.err = fmt.Errorf("%s=%.64q: want a number of at least 0", name, text)
	default:
		return n
	}
	return 0
}

// numberOr is like number for a variable that need not be set.
func (v *variables) numberOr(name string, otherwise int) int {
	if !v.has(name) {
		return otherwise
	}
	return v.number(name)
}

// fail records a problem with the value of a variable.
func (v *variables) fail(name string, err error) {
	if v.err == nil {
		v.err = fmt.Errorf("%s: %w", name, err)
	}
}

// joined returns a text for each part that is not empty, with dots between them.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// oneWord returns a value in quotes if it is not one word.
func oneWord(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// some stands for what differs from one message to the other.
const some = "…"

var verb = regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)

// messageOf returns what a constant text says, with … for each verb and for each part that is not constant. It is empty if e is no text.
func messageOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return once(strings.ReplaceAll(verb.ReplaceAllString(text, some), "%%", "%"))
		}
	case *ast.BinaryExpr:
		left, right := messageOf(e.X), messageOf(e.Y)
		if e.Op == token.ADD && left+right != "" {
			return once(either(left) + either(right))
		}
	}
	return ""
}

// once puts one … in place of several.
func once(text string) string { return strings.ReplaceAll(text, some+some, some) }

func either(text string) string {
	if text == "" {
		return some
	}
	return text
}

// TestErrorsOnPage: the code has every message that docs/errors.md quotes in its tables. A … on the page is a verb, a part that is not
// constant, or what another text adds.
func TestErrorsOnPage(t *testing.T) {
	var messages []string
	for _, file := range productFiles(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if message := messageOf(e); message != "" {
					messages = append(messages, message)
				}
			}
			return true
		})
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "\n## The command line\n")
	quotes := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		quote := strings.TrimSpace(cells[1])
		if strings.HasSuffix(quote, "Error`") {
			quote = strings.TrimSpace(cells[2]) // the table of comm's types has an example of each
		}
		text, isQuote := strings.CutPrefix(strings.TrimSuffix(quote, "`"), "`")
		if !isQuote {
			continue
		}
		quotes++
		text = strings.Trim(text, some+" ")
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, text) }) {
			t.Errorf("docs/errors.md: no message of the code has %q", text)
		}
	}
	if quotes < 60 {
		t.Errorf("docs/errors.md quotes %d messages", quotes)
	}
}

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestExitCodesOnPage: the table in docs/errors.md has the exit codes of the help, in its order and its words. A row may say more.
func TestExitCodesOnPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| exit code | when gorun ends with it |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	plain := regexp.MustCompile("`|\\]\\([^)]*\\)|\\[").ReplaceAllString(table, "")
	rows := strings.Split(plain, "\n")
	if len(rows) != len(exitCodes) {
		t.Errorf("docs/errors.md has %d exit codes, the help has %d", len(rows), len(exitCodes))
	}
	for i, row := range rows[:min(len(rows), len(exitCodes))] {
		if want := "| " + exitCodes[i].code + " | " + exitCodes[i].meaning; row != want+" |" && !strings.HasPrefix(row, want+"; ") {
			t.Errorf("docs/errors.md has the row\n%s\nwant one that begins\n%s", row, want)
		}
	}
}

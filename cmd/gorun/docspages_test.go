package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_ -]`) // what is not in the name of a heading in a link
)

// readPages reads the pages of the documentation, by path from the root of the repository, without their fenced blocks.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..")
	paths := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	for _, folder := range []string{"docs", "docs/results"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("found no pages in %s: %v", folder, err)
		}
		paths = append(paths, found...)
	}
	pages := make(map[string]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.ToSlash(name)] = fenced.ReplaceAllString(string(text), "")
	}
	return pages
}

// TestDocsLinks: every link from a page to the repository leads to a file, and to a heading of it if it names one.
func TestDocsLinks(t *testing.T) {
	pages := readPages(t)
	headings := make(map[string]bool)
	for name, text := range pages {
		for _, match := range heading.FindAllStringSubmatch(text, -1) {
			anchor := strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")
			headings[name+"#"+anchor] = true
		}
	}
	for name, text := range pages {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, named := strings.Cut(match[1], "#")
			target := name
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s: there is no such file", name, match[1])
			} else if named && !headings[target+"#"+anchor] {
				t.Errorf("%s links to %s: there is no such heading", name, match[1])
			}
		}
	}
}

// TestDocsContents: docs/README.md, the contents of the book, names every page once.
func TestDocsContents(t *testing.T) {
	pages := readPages(t)
	contents := pages["docs/README.md"]
	for name := range pages {
		file, ok := strings.CutPrefix(name, "docs/")
		if !ok || file == "README.md" {
			continue
		}
		if n := strings.Count(contents, "| ["); n < 10 {
			t.Fatalf("docs/README.md has %d pages in its tables", n)
		}
		if n := len(regexp.MustCompile(`(?m)^\| \[[^]]+\]\(`+regexp.QuoteMeta(file)+`\)`).FindAllString(contents, -1)); n != 1 {
			t.Errorf("docs/README.md has %d lines for %s: want one", n, file)
		}
	}
}

// TestDocsFilesToCopy: docs/README.md names every file of docs/clusters, and so does a page that says more about it.
func TestDocsFilesToCopy(t *testing.T) {
	pages := readPages(t)
	entries, err := os.ReadDir(filepath.Join("..", "..", "docs", "clusters"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("found no files: %v", err)
	}
	for _, e := range entries {
		elsewhere := 0
		for name, text := range pages {
			switch n := strings.Count(text, "](clusters/"+e.Name()+")"); {
			case name != "docs/README.md":
				elsewhere += n
			case n != 1:
				t.Errorf("docs/README.md names %s %d times: want once", e.Name(), n)
			}
		}
		if elsewhere == 0 {
			t.Errorf("no page says what %s is for", e.Name())
		}
	}
}

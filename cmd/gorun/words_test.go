package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// readWords reads the list in docs/architecture.md: words that names do not use, and what they use instead.
func readWords(t *testing.T) map[string]string {
	t.Helper()
	words := make(map[string]string)
	for _, line := range section(t, "## Words that names do not use") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "| not |") {
			continue
		}
		for word := range strings.SplitSeq(cells[1], ",") {
			words[strings.TrimSpace(word)] = strings.TrimSpace(cells[2])
		}
	}
	return words
}

// TestWords: no file, and no name at the top level of a package, methods included, has a word of the list as a part.
func TestWords(t *testing.T) {
	words := readWords(t)
	if len(words) < 30 {
		t.Fatalf("docs/architecture.md has a list of %d words", len(words))
	}
	for path, file := range productFiles(t) {
		for _, name := range append(topLevel(file), strings.TrimSuffix(filepath.Base(path), ".go")) {
			for _, part := range parts(name) {
				if instead, listed := words[part]; listed {
					t.Errorf("%s: %s has %q in its name: say %s", path, name, part, instead)
				}
			}
		}
	}
}

// productFiles parses the Go files of the repository that are no tests, by path from its root.
func productFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	root, files := filepath.Join("..", ".."), make(map[string]*ast.File)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "docs"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// topLevel returns the names that a file declares for its package, those of methods included.
func topLevel(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, decl.Name.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// parts returns the words of a name in camel case or with underscores, in lower case and without the s of a plural.
func parts(name string) (list []string) {
	part := ""
	end := func() {
		if part != "" {
			list = append(list, strings.ToLower(part), strings.TrimSuffix(strings.ToLower(part), "s"))
		}
		part = ""
	}
	runes := []rune(name)
	for i, r := range runes {
		afterLower := i > 0 && unicode.IsLower(runes[i-1])
		beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if r == '_' || unicode.IsUpper(r) && (afterLower || beforeLower) {
			end()
		}
		if r != '_' {
			part += string(r)
		}
	}
	end()
	return slices.Compact(list)
}

// TestWordsAreFound: what TestWords would say of names that are not as they should be.
func TestWordsAreFound(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\ntype letterBox int\nfunc (letterBox) HEARAll() {}\nconst a, longNaps = 1, 2\nvar b, TCPDoor int", 0)
	if err != nil {
		t.Fatal(err)
	}
	names := topLevel(file)
	if want := []string{"letterBox", "HEARAll", "a", "longNaps", "b", "TCPDoor"}; !slices.Equal(names, want) {
		t.Fatalf("names %q, want %q", names, want)
	}
	for name, want := range map[string]string{"letterBox": "letter", "HEARAll": "hear", "longNaps": "nap", "TCPDoor": "door", "stage_linux": "stage"} {
		if !slices.Contains(parts(name), want) {
			t.Errorf("parts of %s are %q, without %q", name, parts(name), want)
		}
	}
	if slices.Contains(parts("heartbeat"), "hear") {
		t.Error("heartbeat is one word")
	}
}

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gorun/gorun"

var update = flag.Bool("update", false, "write the imports of all packages into docs/architecture.md")

const architecture = "../../docs/architecture.md"

// section returns the lines of docs/architecture.md below a heading.
func section(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/architecture.md has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return strings.Split(below, "\n")
}

// readRules reads which folders may import what, beside the standard library and themselves.
func readRules(t *testing.T) map[string][]string {
	t.Helper()
	rules := make(map[string][]string)
	for _, line := range section(t, "## Who imports whom") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "may import") {
			continue
		}
		folder := strings.TrimSpace(cells[1])
		rules[folder] = append(strings.Split(strings.ReplaceAll(cells[2], " ", ""), ","), folder)
	}
	return rules
}

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath     string
	Dir            string
	Imports        []string
	Deps           []string
	GoFiles        []string
	IgnoredGoFiles []string
	CgoFiles       []string
}

// list returns the packages of the module.
func list(t *testing.T) []pkg {
	t.Helper()
	// -e: a package that does not compile is the compiler's to complain about.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Imports,Deps,GoFiles,IgnoredGoFiles,CgoFiles", module+"/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // whatever the tests are built with
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// path returns how docs/architecture.md writes an import path: from the root of this repository, or a module of others. It is "" in the
// standard library.
func path(imported string) string {
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		return ours
	}
	elements := strings.Split(imported, "/")
	if !strings.Contains(elements[0], ".") {
		return ""
	}
	return strings.Join(elements[:min(3, len(elements))], "/")
}

// imports returns the paths that a package imports, sorted.
func (p pkg) imports() []string {
	var paths []string
	for _, imported := range p.Imports {
		if path := path(imported); path != "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// below reports whether a path is a folder, or below it.
func below(folder, path string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// TestImportPolicy: each package imports only what the rule of its folder allows, and what tests use is imported by tests only.
func TestImportPolicy(t *testing.T) {
	rules := readRules(t)
	tooling := regexp.MustCompile(`/testing/|test$`)
	for _, p := range list(t) {
		name := path(p.ImportPath)
		var rule string
		for folder := range rules {
			if below(folder, name) && len(folder) > len(rule) {
				rule = folder
			}
		}
		if rule == "" && !below("cmd", name) && !below("docs", name) && !below("scripts", name) {
			t.Errorf("docs/architecture.md has no rule for %s", name)
		}
		if tooling.MatchString(name) {
			continue
		}
		for _, imported := range p.imports() {
			allowed := slices.ContainsFunc(rules[rule], func(folder string) bool { return below(folder, imported) })
			if rule != "" && !allowed || tooling.MatchString(imported) {
				t.Errorf("%s imports %s, which docs/architecture.md does not allow", name, imported)
			}
		}
	}
}

// TestImportsOnPage: docs/architecture.md shows which packages of this module each one imports.
func TestImportsOnPage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the page shows what packages import on Linux")
	}
	const begin, end = "<!-- imports -->\n```\n", "```\n<!-- end -->"
	var want strings.Builder
	for _, p := range list(t) {
		name := path(p.ImportPath)
		if below("docs", name) || below("scripts", name) || strings.Contains(name, "/testing/") {
			continue
		}
		line := name + ":"
		for _, imported := range p.imports() {
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				continue
			}
			if len(line)+1+len(imported) > 120 {
				want.WriteString(line + "\n")
				line = "   "
			}
			line += " " + imported
		}
		want.WriteString(line + "\n")
	}
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	got, after, found := strings.Cut(rest, end)
	switch {
	case !found:
		t.Fatal("docs/architecture.md has no place for the imports")
	case got == want.String():
	case *update:
		if err := os.WriteFile(architecture, []byte(before+begin+want.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/architecture.md does not have the imports of now: run go test ./cmd/gorun -run TestImportsOnPage -update")
	}
}

// TestGuardIsLight: what imports these packages is initialised late, and a guard would wait for it.
func TestGuardIsLight(t *testing.T) {
	const light = "launcher/guard"
	all := list(t)
	i := slices.IndexFunc(all, func(p pkg) bool { return path(p.ImportPath) == light })
	if i < 0 {
		t.Fatalf("there is no package %s", light)
	}
	for _, dep := range all[i].Deps {
		first, _, _ := strings.Cut(dep, "/")
		if slices.Contains([]string{"crypto", "log", "net", "regexp", "text", "vendor"}, first) || dep == "path/filepath" {
			t.Errorf("%s imports %s", light, dep)
		}
	}
}

// TestPackageComments: every package has one, in one file, and it names the package unless that is a program.
func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		var documented []string
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.CgoFiles) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			if file.Doc == nil || strings.HasSuffix(name, "_test.go") {
				continue
			}
			documented = append(documented, name)
			text := file.Doc.Text()
			if file.Name.Name != "main" && !strings.HasPrefix(text, "Package "+file.Name.Name+" ") {
				t.Errorf("%s: the comment of %s begins %.30q", p.ImportPath, name, text)
			}
		}
		if len(p.GoFiles) > 0 && len(documented) != 1 { // a package may be tests only
			t.Errorf("%s has package comments in %q, want one", p.ImportPath, documented)
		}
	}
}

var promise = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`)

// TestNoPromises: what is not done is an issue, not a comment.
func TestNoPromises(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if promise.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTopLevel: the tree has these folders, and no others.
func TestTopLevel(t *testing.T) {
	list, err := os.ReadDir(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") && !slices.Contains([]string{"agent", "cmd", "comm", "docs", "env", "launcher", "rendezvous", "scripts"}, d.Name()) {
			t.Errorf("folder %s: a package for several of these folders belongs below env", d.Name())
		}
	}
}

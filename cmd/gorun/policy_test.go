package main

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gorun/gorun"

// outside says what the names in the import table mean that are not packages of this module: modules, with what they bring.
var outside = map[string]string{
	"x/sys":  "golang.org/x/sys/...",
	"x/term": "golang.org/x/term|golang.org/x/sys/...",
	"hclog":  "github.com/hashicorp/go-hclog|github.com/fatih/color|github.com/mattn/...",
	"cobra":  "github.com/spf13/...",
	"cbor":   "github.com/fxamacker/...|github.com/x448/...",
	"prometheus": "github.com/prometheus/...|github.com/beorn7/perks/...|github.com/cespare/xxhash/...|github.com/munnerz/goautoneg|" +
		"google.golang.org/protobuf/...|go.yaml.in/...|golang.org/x/...",
	"systemd": "github.com/coreos/go-systemd/...",
	"etcd client": "go.etcd.io/etcd/api/...|go.etcd.io/etcd/client/...|google.golang.org/...|golang.org/x/...|go.uber.org/...|" +
		"github.com/coreos/...|github.com/golang/protobuf/...|github.com/grpc-ecosystem/grpc-gateway/...",
	"etcd server": "github.com/...|go.etcd.io/...|go.opentelemetry.io/...|go.uber.org/...|go.yaml.in/...|golang.org/x/...|" +
		"google.golang.org/...|gopkg.in/...|k8s.io/...|sigs.k8s.io/...",
}

// unbound matches what may import everything: programs, and what only tests import.
var unbound = regexp.MustCompile(`^(cmd/gorun|docs/examples(/.*)?|scripts/.*|(env|comm/internal)/testing/.*|.*/[a-z]+test)$`)

// section returns the lines of docs/architecture.md below a heading.
func section(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
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

// readImports reads the import table of docs/architecture.md: patterns of packages, and of what these may import beside std.
func readImports(t *testing.T) map[string][]string {
	t.Helper()
	table := make(map[string][]string)
	for _, line := range section(t, "## Who may import whom") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.Contains(line, "---") || strings.Contains(line, "may import") {
			continue
		}
		var allowed []string
		for name := range strings.SplitSeq(cells[2], ",") {
			if name = pattern(name); name == "" {
				continue
			}
			if modules, ok := outside[name]; ok {
				name = modules
			}
			allowed = append(allowed, name)
		}
		for row := range strings.SplitSeq(cells[1], ",") {
			row = pattern(row)
			if _, twice := table[row]; twice {
				t.Errorf("the import table has %s twice", row)
			}
			table[row] = allowed
		}
	}
	return table
}

// pattern is a cell, or a part of one, as go list writes patterns.
func pattern(cell string) string { return strings.ReplaceAll(strings.TrimSpace(cell), "…", "...") }

// A pkg is what go list says of a package.
type pkg struct {
	ImportPath     string
	Dir            string
	Standard       bool
	Deps           []string
	GoFiles        []string
	IgnoredGoFiles []string
}

// list returns the packages of the module, and those that they import.
func list(t *testing.T) (all map[string]pkg, ours []pkg) {
	t.Helper()
	// -e: a package that does not compile is the compiler's to complain about.
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Dir,Standard,Deps,GoFiles,IgnoredGoFiles", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all = make(map[string]pkg)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, ours
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
		if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
			ours = append(ours, p)
		}
	}
}

// closure adds to patterns what the rows of the packages that they name allow.
func closure(imports map[string][]string, patterns []string) []string {
	all := slices.Clone(patterns)
	for i := 0; i < len(all); i++ {
		for _, more := range imports[all[i]] {
			if !slices.Contains(all, more) {
				all = append(all, more)
			}
		}
	}
	return all
}

func TestImportPolicy(t *testing.T) {
	imports := readImports(t)
	all, ours := list(t)
	checked := make(map[string]bool)
	for _, p := range ours {
		bound := false
		for row, allowed := range imports {
			if !matches(row, p.ImportPath) {
				continue
			}
			checked[row], bound = true, true
			for _, dep := range p.Deps {
				if all[dep].Standard || strings.HasPrefix(dep, "vendor/") || matchesAny(closure(imports, allowed), dep) {
					continue
				}
				t.Errorf("%s imports %s, which docs/architecture.md does not allow", p.ImportPath, dep)
			}
		}
		if path := strings.TrimPrefix(p.ImportPath, module+"/"); !bound && !unbound.MatchString(path) {
			t.Errorf("the import table of docs/architecture.md has no row for %s", path)
		}
	}
	for row := range imports {
		if !checked[row] {
			t.Errorf("docs/architecture.md has a row for %s, and there is no such package", row)
		}
	}
}

// TestPackagesOnPage: docs/architecture.md has a line for each package, and names no folder that is not there.
func TestPackagesOnPage(t *testing.T) {
	_, ours := list(t)
	here := make(map[string]bool)
	for _, p := range ours {
		here[strings.TrimPrefix(p.ImportPath, module+"/")] = true
	}
	named := make(map[string]bool)
	for _, line := range section(t, "## Folders and packages") {
		folder, _, found := strings.Cut(line, "/ ")
		if !found || strings.HasPrefix(line, " ") {
			continue
		}
		named[folder] = true
		if info, err := os.Stat(filepath.Join("..", "..", folder)); err != nil || !info.IsDir() {
			t.Errorf("docs/architecture.md names the folder %s, which is not there", folder)
		}
	}
	for path := range here {
		if !named[path] && !strings.HasPrefix(path, "docs/") && !strings.Contains(path, "/peers") {
			t.Errorf("docs/architecture.md has no line for %s", path)
		}
	}
}

// TestGuardIsLight: what imports these packages is initialised late, and a guard would wait for it.
func TestGuardIsLight(t *testing.T) {
	all, _ := list(t)
	const path = "/launcher/guard/reexec"
	p, ok := all[module+path]
	if !ok {
		t.Errorf("there is no package %s", path)
	}
	for _, dep := range p.Deps {
		first, _, _ := strings.Cut(dep, "/")
		if slices.Contains([]string{"crypto", "log", "net", "regexp", "text", "vendor"}, first) || dep == "path/filepath" {
			t.Errorf("%s imports %s", path, dep)
		}
	}
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// matches reports whether an import path is that of a pattern: alternatives by |, "/..." for all below as well,
// relative to the module if the first element is no host.
func matches(pattern, path string) bool {
	for p := range strings.SplitSeq(pattern, "|") {
		first, _, _ := strings.Cut(p, "/")
		if !strings.Contains(first, ".") {
			p = module + "/" + p
		} else if strings.HasPrefix(path, module+"/") { // ours are never meant by a host
			continue
		}
		prefix, below := strings.CutSuffix(p, "/...")
		if path == prefix || below && strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"env", module + "/env", true},
		{"env", module + "/envy", false},
		{"env", module + "/env/internal", false},
		{"comm/...", module + "/comm", true},
		{"comm/...", module + "/comm/internal/plan", true},
		{"comm/...", module + "/community", false},
		{outside["x/sys"], "golang.org/x/sys/unix", true},
		{outside["hclog"], "github.com/mattn/go-isatty", true},
		{outside["hclog"], "github.com/fatih/colors", false},
		{outside["etcd server"], "github.com/prometheus/client_golang/prometheus", true},
		{outside["etcd server"], module + "/agent", false},
	} {
		if got := matches(c.pattern, c.path); got != c.want {
			t.Errorf("matches(%q, %q) = %t", c.pattern, c.path, got)
		}
	}
}

// TestPackageComments: every package has one, in one file, and it names the package unless that is a program.
func TestPackageComments(t *testing.T) {
	_, ours := list(t)
	for _, p := range ours {
		var documented []string
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
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

package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
)

// TestEnvironmentPage: docs/environment.md has every variable that the code reads or sets, and no other, but for the defaults of flags.
func TestEnvironmentPage(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "environment.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	onPage := make(map[string]bool)
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`([A-Z][A-Z0-9_]+)`").FindAllStringSubmatch(cells[1], -1) {
				onPage[m[1]] = true
			}
		}
	}

	inCode := variablesOf(t, root)
	for _, name := range env.Names() {
		inCode[name] = true
	}
	for i := range table { // the page has the rule for defaults of flags, and the help has the flags
		f := &table[i]
		delete(inCode, f.env())
		if f.alias != "" {
			delete(inCode, f.alias) // it has no row of its own
			if !strings.Contains(page, "`"+f.alias+"`") {
				t.Errorf("docs/environment.md does not name %s", f.alias)
			}
		}
	}
	inCode[commAddr] = true // an alias, and more than that
	for name := range inCode {
		if !onPage[name] {
			t.Errorf("docs/environment.md has no row for %s", name)
		}
	}
	for name := range onPage {
		if !inCode[name] {
			t.Errorf("docs/environment.md has a row for %s, which the code neither reads nor sets", name)
		}
	}
}

// TestVariablesOf: the page can be no better than what is found in the code.
func TestVariablesOf(t *testing.T) {
	for name, source := range map[string]string{
		"literal":   `func f() { os.Getenv("SHOP") }`,
		"loop":      `func f() { for _, n := range []string{"SHOP"} { os.LookupEnv(n) } }`,
		"constant":  `const name = "SHOP"; func f(lookup func(string) string) { lookup(name) }`,
		"set":       `func f() string { return "SHOP_NAME=" + g() }`,
		"set later": `var entry = "SHOP_NAME"`,
		"temporary": `func f() { os.MkdirTemp("", "x") }`,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"set": "SHOP_NAME", "set later": "SHOP_NAME", "temporary": "TMPDIR"}[name]
		if want == "" {
			want = "SHOP"
		}
		if got := slices.Collect(maps.Keys(variablesIn(file, constantsOf(file)))); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %s", name, got, want)
		}
	}
}

// variablesOf returns the variables that the product's code names.
func variablesOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	variables := make(map[string]bool)
	for _, top := range []string{"agent", "cmd", "comm", "env", "launcher", "rendezvous"} {
		packages := make(map[string][]*ast.File) // by folder
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testdata", "testing", "gen"}, d.Name()):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, files := range packages {
			constants := constantsOf(files...)
			for _, file := range files {
				maps.Copy(variables, variablesIn(file, constants))
			}
		}
	}
	// These look like variables, and are something else.
	for _, name := range []string{"PCI_SLOT_NAME"} { // a field of /sys/.../uevent
		delete(variables, name)
	}
	return variables
}

var (
	variableName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+=?$`) // anywhere in the code
	anyName      = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=?$`)             // in a function that reads the environment
	readsOne     = regexp.MustCompile(`(?i)^(getenv|lookup(env)?)$`)
)

// variablesIn returns the variables that a file names: texts that look like variables, what functions that read the environment name,
// and what the os package reads for them.
func variablesIn(file *ast.File, constants map[string]string) map[string]bool {
	found := make(map[string]bool)
	add := func(text string, pattern *regexp.Regexp) {
		if pattern.MatchString(text) {
			found[strings.TrimSuffix(text, "=")] = true
		}
	}
	for _, decl := range file.Decls {
		function, _ := decl.(*ast.FuncDecl)
		pattern := variableName
		if function != nil && function.Body != nil && readsEnvironment(function) {
			pattern = anyName
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					add(text, pattern)
				}
			case *ast.Ident:
				if function != nil {
					add(constants[n.Name], pattern)
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "MkdirTemp" || n.Sel.Name == "TempDir" {
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "os" {
						found["TMPDIR"] = true
					}
				}
			}
			return true
		})
	}
	return found
}

// readsEnvironment reports whether a function calls one that reads a variable.
func readsEnvironment(function *ast.FuncDecl) bool {
	reads := false
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			reads = reads || readsOne.MatchString(f.Name)
		case *ast.SelectorExpr:
			reads = reads || readsOne.MatchString(f.Sel.Name)
		}
		return true
	})
	return reads
}

// constantsOf returns the text constants that files declare.
func constantsOf(files ...*ast.File) map[string]string {
	constants := make(map[string]string)
	for _, file := range files {
		for _, decl := range file.Decls {
			if general, ok := decl.(*ast.GenDecl); ok && general.Tok == token.CONST {
				for _, spec := range general.Specs {
					value := spec.(*ast.ValueSpec)
					for i, expr := range value.Values {
						if lit, ok := expr.(*ast.BasicLit); ok && lit.Kind == token.STRING {
							constants[value.Names[i].Name], _ = strconv.Unquote(lit.Value)
						}
					}
				}
			}
		}
	}
	return constants
}

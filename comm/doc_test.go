package comm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tables under "Calls" in docs/comm.md have every exported function, and every method of what a program calls: no
// more, no less.
func TestTheGuideHasEveryCall(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "comm.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, calls, _ := strings.Cut(string(page), "\n## Calls\n")
	calls, _, _ = strings.Cut(calls, "\n## ")
	var documented []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(calls, -1) {
		for _, name := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, name[1])
		}
	}
	exported := exportedCalls(t)
	slices.Sort(documented)
	slices.Sort(exported)
	for _, name := range exported {
		if _, ok := slices.BinarySearch(documented, name); !ok {
			t.Errorf("%s is in no table", name)
		}
	}
	for i, name := range documented {
		if _, ok := slices.BinarySearch(exported, name); !ok {
			t.Errorf("%s is in a table, and not exported", name)
		}
		if i > 0 && documented[i-1] == name {
			t.Errorf("%s is there twice", name)
		}
	}
}

// Every exported function has an example of its own; options, methods and other forms of
// a call are called in one at least.
func TestEveryCallHasAnExample(t *testing.T) {
	files, err := filepath.Glob("example_*test.go")
	if err != nil {
		t.Fatal(err)
	}
	named, called := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if of, ok := strings.CutPrefix(f.Name.Name, "Example"); ok {
				named[of] = true
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if f, ok := call.Fun.(*ast.SelectorExpr); ok {
						called[f.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	calls := exportedCalls(t)
	for _, name := range calls {
		_, method, isMethod := strings.Cut(name, ".")
		switch {
		case isMethod && !called[method]:
			t.Errorf("%s is called in no example", name)
		case strings.HasPrefix(name, "With") && !called[name]:
			t.Errorf("option %s is in no example", name)
		case strings.HasPrefix(name, "I") && slices.Contains(calls, name[1:]), strings.HasSuffix(name, "To") && name != "AllReduceTo":
			if !called[name] {
				t.Errorf("%s is called in no example", name)
			}
		case !isMethod && !strings.HasPrefix(name, "With") && !named[name]:
			t.Errorf("%s has no example", name)
		}
	}
}

// exportedCalls are the exported functions of this package, and the methods of a group and of what it is used with.
func exportedCalls(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			if f.Recv == nil {
				names = append(names, f.Name.Name)
			} else if of := receiver(f); slices.Contains([]string{"Group", "Mesh", "Work", "Bucketer"}, of) {
				names = append(names, of+"."+f.Name.Name)
			}
		}
	}
	return names
}

// receiver is the name of the type that f is a method of.
func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, _ := typ.(*ast.Ident)
	return name.Name
}

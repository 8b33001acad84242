package shm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Shared memory is read and written through package cpu, so that no order of accesses stays out of the tests' reach.
func TestSharedMemoryIsAccessedThroughCPU(t *testing.T) {
	var files []string
	for _, dir := range []string{".", "stream", "../wait"} {
		here, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(here) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		files = append(files, here...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.Ident:
				if f.Name == "copy" {
					t.Errorf("%v: copy: want one of package cpu", set.Position(call.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := f.X.(*ast.Ident); ok && x.Name == "atomic" {
					t.Errorf("%v: atomic.%s: want one of package cpu", set.Position(call.Pos()), f.Sel.Name)
				}
			}
			return true
		})
	}
}

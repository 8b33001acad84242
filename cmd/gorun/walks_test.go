package main

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

// walks are the headings of docs/architecture.md below which it follows calls from function to function.
var walks = []string{
	"## How a call travels", "## From a worker's death to the next round", "## From a worker's death to the next world",
	"## From a command line to the first line of a worker",
}

var quoted = regexp.MustCompile("`([^`]+)`")

// TestWalks: every name in the walks of docs/architecture.md is that of a function, method, type, folder or file. A qualified name has
// its type or its package in front of it, or both.
func TestWalks(t *testing.T) {
	known := make(map[string]bool)
	for file, parsed := range productFiles(t) {
		for name := path.Dir(file); name != "."; name = path.Dir(name) {
			known[name] = true
		}
		known[path.Base(path.Dir(file))+"/"+path.Base(file)] = true
		for _, name := range declared(parsed) {
			known[name], known[parsed.Name.Name+"."+name] = true, true
			if _, method, found := strings.Cut(name, "."); found {
				known[method] = true
			}
		}
	}
	names := 0
	for _, heading := range walks {
		for _, match := range quoted.FindAllStringSubmatch(strings.Join(section(t, heading), "\n"), -1) {
			if names++; !known[match[1]] {
				t.Errorf("docs/architecture.md, %q: there is no %s", heading, match[1])
			}
		}
	}
	if names < 100 {
		t.Errorf("the walks have %d names", names)
	}
}

// declared returns the functions and types of a file. The name of a method is that of its type, a point, and its own.
func declared(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = typeName(decl.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					names = append(names, spec.Name.Name)
					names = append(names, interfaceMethods(spec)...)
				}
			}
		}
	}
	return names
}

func interfaceMethods(spec *ast.TypeSpec) (names []string) {
	if face, ok := spec.Type.(*ast.InterfaceType); ok {
		for _, method := range face.Methods.List {
			for _, name := range method.Names {
				names = append(names, spec.Name.Name+"."+name.Name)
			}
		}
	}
	return names
}

// typeName returns the name of a receiver's type.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

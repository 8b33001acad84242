package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// load returns the packages, with their tests. It loads the types and comments of what they import. It reads the bodies of functions there only
// for a few packages: to read all takes long, and no check needs it.
func load(tags string, patterns []string) (ours []*packages.Package, err error) {
	fset := token.NewFileSet()
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule |
		packages.NeedTypesSizes | packages.NeedForTest
	roots, err := packages.Load(&packages.Config{Mode: mode, Tests: true, BuildFlags: []string{"-tags=" + tags}}, patterns...)
	if err != nil {
		return nil, err
	}
	l := loader{fset: fset, cores: make(chan struct{}, runtime.GOMAXPROCS(0)), done: map[*packages.Package]chan struct{}{}}
	packages.Visit(roots, nil, func(p *packages.Package) { l.done[p] = make(chan struct{}) })
	for p := range l.done {
		go l.load(p)
	}
	tested := map[string]bool{} // those that are loaded together with their own tests
	for p, done := range l.done {
		<-done
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		tested[p.PkgPath] = tested[p.PkgPath] || p.ForTest == p.PkgPath
	}
	for p := range l.done {
		if !own(p) {
			p.Imports = nil // what they import does not matter
		}
	}
	for _, p := range roots {
		if !strings.HasSuffix(p.ID, ".test") && (p.ForTest != "" || !tested[p.PkgPath]) {
			ours = append(ours, p)
		}
	}
	return ours, err
}

func own(p *packages.Package) bool { return p.Module != nil && p.Module.Main }

// known has the standard packages of whose functions checks have to know whether they return.
var known = []string{"log", "os", "runtime", "testing"}

type loader struct {
	fset  *token.FileSet
	cores chan struct{} // as many at a time
	done  map[*packages.Package]chan struct{}
}

// load loads a package after those that it imports.
func (l *loader) load(p *packages.Package) {
	defer close(l.done[p])
	for _, i := range p.Imports {
		<-l.done[i]
	}
	l.cores <- struct{}{}
	defer func() { <-l.cores }()
	p.Fset = l.fset
	p.TypesInfo = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{}}
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return
	}
	mode := parser.ParseComments
	if !own(p) {
		mode |= parser.SkipObjectResolution // ineffassign needs that
	}
	for _, name := range p.CompiledGoFiles {
		f, err := parser.ParseFile(l.fset, name, nil, mode)
		if err != nil {
			p.Errors = append(p.Errors, packages.Error{Msg: err.Error()})
			return
		}
		p.Syntax = append(p.Syntax, f)
	}
	whole := own(p) || slices.Contains(known, p.PkgPath)
	config := types.Config{IgnoreFuncBodies: !whole, Sizes: p.TypesSizes, FakeImportC: true, Importer: importer(p.Imports), Error: func(e error) {
		if own(p) {
			p.Errors = append(p.Errors, packages.Error{Msg: e.Error()})
		}
	}}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types, _ = config.Check(p.PkgPath, l.fset, p.Syntax, p.TypesInfo)
	if whole {
		return
	}
	p.TypesInfo.InitOrder = nil
	for _, f := range p.Syntax {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				d.Body = nil
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR {
						v.Values = nil
					}
				}
			}
		}
	}
}

type importer map[string]*packages.Package

func (i importer) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil && p.Types != nil {
		return p.Types, nil
	}
	return nil, fmt.Errorf("no package %s among %v", path, slices.Sorted(maps.Keys(i)))
}

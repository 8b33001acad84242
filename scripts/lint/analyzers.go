package main

import (
	"errors"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/nishanths/exhaustive/passes/exhaustive"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"honnef.co/go/tools/quickfix"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// all returns all checks.
func all() ([]*analysis.Analyzer, error) {
	checks := append(slices.Clone(vet), ineffassign.Analyzer, exhaustive.Analyzer, errorlint.NewAnalyzer(), unchecked, notUsed)
	for _, a := range slices.Concat(staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers, quickfix.Analyzers) {
		if !slices.Contains(left, a.Analyzer.Name) {
			checks = append(checks, a.Analyzer)
		}
	}
	return checks, errors.Join(exhaustive.Analyzer.Flags.Set("d", "true"), exhaustive.Analyzer.Flags.Set("typeignore", `^reflect\.Kind$`))
}

// left has the checks of style that golangci-lint leaves out, too.
var left = []string{"ST1000", "ST1003", "ST1016", "ST1020", "ST1021", "ST1022"}

// excused says whether what a check has found is in a generated file, or on a line with nolint.
func excused(a *checker.Action, d analysis.Diagnostic) bool {
	at := a.Package.Fset.Position(d.Pos)
	if a.Analyzer.Name == "errorlint" && strings.HasSuffix(at.Filename, "_test.go") && strings.Contains(d.Message, "non-wrapping format verb") {
		return true // what a test says of an error is for people
	}
	for _, f := range a.Package.Syntax {
		if d.Pos < f.FileStart || f.FileEnd < d.Pos {
			continue
		}
		excuses := func(c *ast.Comment) bool {
			return strings.HasPrefix(c.Text, "//nolint:") && a.Package.Fset.Position(c.Pos()).Line == at.Line
		}
		return ast.IsGenerated(f) || slices.ContainsFunc(f.Comments, func(g *ast.CommentGroup) bool { return slices.ContainsFunc(g.List, excuses) })
	}
	return false
}

// unchecked is errcheck, but for errors that nobody checks.
var unchecked = &analysis.Analyzer{Name: "errcheck", Doc: "errors are checked", Requires: []*analysis.Analyzer{errcheck.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, e := range pass.ResultOf[errcheck.Analyzer].(errcheck.Result).UncheckedErrors {
			if !ignored.MatchString(e.FuncName) {
				pass.Reportf(position(pass, e.Pos), "the error of %s is not checked", e.FuncName)
			}
		}
		return nil, nil
	}}

var ignored = regexp.MustCompile(`\.(Close|Flush|F?[Pp]rint(f|ln)?)$|^os\.(Remove(All)?|(Uns|S)etenv)$|^\(?\*?os\.(Stdout|Stderr)\.`)

// notUsed is unused.
var notUsed = &analysis.Analyzer{Name: "unused", Doc: "what is declared is used", Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		result := pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result)
		for _, o := range result.Unused {
			same := func(u unused.Object) bool { return u.Name == o.Name && u.Position == o.Position }
			if o.Kind != "type param" && !slices.ContainsFunc(result.Used, same) {
				pass.Reportf(position(pass, o.Position), "%s %s is unused", o.Kind, o.Name)
			}
		}
		return nil, nil
	}}

// position finds a place in a package's files.
func position(pass *analysis.Pass, at token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.FileStart); file.Name() == at.Filename {
			return file.Pos(at.Offset)
		}
	}
	return token.NoPos
}

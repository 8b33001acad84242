// Command lint finds defects in Go code, with the checks of .golangci.yml that find defects. It compiles in a tenth of the time that
// golangci-lint takes, which runs at night with all of them, and compiles nothing of what it checks.
//
//	lint [-vet] [-tags TAGS] PACKAGE...
//
// GOOS and GOARCH choose another platform. With -vet, there are only the checks of go vet.
// It is a module of its own, so that gorun does not depend on its modules.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

func main() {
	few := flag.Bool("vet", false, "only the checks of go vet")
	tags := flag.String("tags", "", "build tags")
	flag.Parse()
	if err := run(*few, *tags, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
}

func run(few bool, tags string, patterns []string) error {
	pkgs, err := load(tags, patterns)
	if err != nil {
		return err
	}
	checks := vet
	if !few {
		if checks, err = all(); err != nil {
			return err
		}
	}
	found, err := check(checks, pkgs)
	if err != nil {
		return err
	}
	for _, line := range found {
		fmt.Println(line)
	}
	if len(found) > 0 {
		return fmt.Errorf("%d places to mend", len(found))
	}
	return nil
}

// check returns what the checks find, a line each.
func check(checks []*analysis.Analyzer, pkgs []*packages.Package) ([]string, error) {
	graph, err := checker.Analyze(checks, pkgs, nil)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, a := range graph.Roots {
		if a.Err != nil {
			return nil, fmt.Errorf("%s of %s: %w", a.Analyzer.Name, a.Package.ID, a.Err)
		}
		for _, d := range a.Diagnostics {
			if !excused(a, d) {
				found = append(found, fmt.Sprintf("%s: %s (%s)", a.Package.Fset.Position(d.Pos), d.Message, a.Analyzer.Name))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

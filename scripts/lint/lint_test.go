package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// defects has a defect of each kind in a line that names the check, and others that are excused.
const defects = `// Package x has defects.
package x

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

func unusedFunction() {} // unused

type color int

const (
	red color = iota
	green
)

// F has defects.
func F(c color, e error, g *os.File, t *testing.T) error {
	os.Chdir("/") // errcheck
	os.Chdir("/") //nolint:errcheck // excused
	var f *os.File
	defer f.Close()
	fmt.Println("a")
	fmt.Printf("%d\n", "a") // printf
	var m map[string]int
	m["a"] = 1 // nilness
	switch c { // exhaustive
	case red:
	}
	n := 1 // ineffassign
	n = 2 // ineffassign
	n = len(os.Args)
	if n == n { // SA4000
		fmt.Fprintln(os.Stderr, n)
	}
	if e == os.ErrExist { // errorlint
		return errors.New("Capital.") // ST1005
	}
	if g == nil {
		t.Fatal("never returns")
	}
	_ = *g
	return nil
}
`

func TestFindsDefects(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "x.go": defects} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checks, err := all()
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := load("", []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	found, err := check(checks, pkgs)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(defects, "\n") {
		_, name, marked := strings.Cut(line, " // ")
		wanted := marked && !strings.Contains(line, "nolint")
		at := slices.ContainsFunc(found, func(f string) bool {
			return strings.Contains(f, fmt.Sprintf("x.go:%d:", i+1)) && (!wanted || strings.HasSuffix(f, "("+name+")"))
		})
		if at != wanted {
			t.Errorf("line %d, %q: found %v, want %v", i+1, line, at, wanted)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(found, "\n"))
	}
}

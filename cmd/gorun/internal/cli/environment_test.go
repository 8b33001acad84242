package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
)

// TestEnvironmentPage: docs/environment.md has every variable that the code reads or sets, and no other, but for the
// defaults of flags.
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
	surely, perhaps := variablesOf(t, root)
	for _, name := range env.Names() {
		surely[name] = true
	}
	for i := range table { // the page has the rule for defaults of flags, and the help has the flags
		delete(surely, table[i].env())
		if alias := table[i].alias; alias != "" {
			delete(surely, alias) // it has no row of its own
			if !strings.Contains(page, "`"+alias+"`") {
				t.Errorf("docs/environment.md does not name %s", alias)
			}
		}
	}
	for _, name := range removedVariables { // a warning names them
		delete(surely, name)
	}
	surely[commAddr] = true // an alias, and more than that
	for name := range surely {
		if !onPage[name] {
			t.Errorf("docs/environment.md has no row for %s", name)
		}
	}
	for name := range onPage {
		if !surely[name] && !perhaps[name] {
			t.Errorf("docs/environment.md has a row for %s, which the code neither reads nor sets", name)
		}
	}
}

var (
	upperCase = regexp.MustCompile(`"([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*)=?"`)
	reading   = regexp.MustCompile(`(?i)(getenv|lookup(env)?)\(([a-z.]+, )?"|range \[\]string\{"|Variable +=`)
)

// variablesOf returns the variables that the product's code surely names, and all texts there that may be the name of
// one. Surely means that the text has an underscore, or is in a line that reads a variable.
func variablesOf(t *testing.T, root string) (surely, perhaps map[string]bool) {
	t.Helper()
	surely, perhaps = make(map[string]bool), map[string]bool{"TMPDIR": true} // which package os reads
	for _, top := range []string{"agent", "cmd", "comm", "env", "launcher", "rendezvous"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testdata", "testing", "gen"}, d.Name()):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			code, err := os.ReadFile(path)
			for line := range strings.Lines(string(code)) {
				for _, m := range upperCase.FindAllStringSubmatch(line, -1) {
					perhaps[m[1]] = true
					if strings.Contains(m[1], "_") || reading.MatchString(line) {
						surely[m[1]] = true
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	delete(surely, "PCI_SLOT_NAME") // a field of /sys/.../uevent
	return surely, perhaps
}

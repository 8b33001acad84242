package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestModuleOfThePage makes the module of docs/module.md, in a folder of its own: it writes the blocks that name a Go file, and runs the
// commands of those marked "console module", in the order of the page. The module gets gorun from this checkout.
func TestModuleOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "module.md"))
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	offline := []string{"GOPROXY=off", "GOSUMDB=off", "GOWORK=off"} // the modules that comm needs are there, or this test would not have been built
	step := regexp.MustCompile("(?ms)^```(go [a-z_]+\\.go|console module)\n(.*?)^```")
	files, commands := 0, 0
	for _, block := range step.FindAllStringSubmatch(string(page), -1) {
		if name, isFile := strings.CutPrefix(block[1], "go "); isFile {
			files++
			if err := os.WriteFile(filepath.Join(dir, name), []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, entry := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			commands++
			command, output, _ := strings.Cut(entry, "\n")
			compare(t, command, shIn(t, dir, command, offline...), sortedLines(output))
			if strings.HasPrefix(command, "go mod init ") {
				shIn(t, dir, "go mod edit -replace github.com/gorun/gorun="+checkout, offline...)
			}
		}
	}
	if files != 2 || commands < 5 {
		t.Errorf("docs/module.md has %d files and %d commands", files, commands)
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt would change %s (%v)", out, err)
	}
}

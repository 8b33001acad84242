// Package configtest lets tests, and the programs that they start, have a directory for settings of their own, so that they leave
// that of who runs them alone.
package configtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// M runs the tests of a package.
type M struct{ tests *testing.M }

// With returns m with a directory for settings of its own.
func With(m *testing.M) M { return M{m} }

// prefix begins the names of the directories.
const prefix = "gorun-settings-"

// Run runs the tests and returns their exit code, as that of [testing.M]. Those of a test binary that a test has started use its
// directory.
func (m M) Run() int {
	if strings.HasPrefix(filepath.Base(os.Getenv("XDG_CONFIG_HOME")), prefix) {
		return m.tests.Run()
	}
	settings, err := os.MkdirTemp("", prefix+"*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(settings) }()
	if theirs, err := os.UserConfigDir(); err == nil && os.Getenv("GOENV") == "" { // the go command's stay as they are
		_ = os.Setenv("GOENV", filepath.Join(theirs, "go", "env"))
	}
	_ = os.Setenv("XDG_CONFIG_HOME", settings) // these names are good ones
	return m.tests.Run()
}

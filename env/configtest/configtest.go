// Package configtest gives the tests of a package, and the programs that they start, their own settings directory
// (XDG_CONFIG_HOME), so that they do not touch the user's. Running jobs have their sockets there, too (XDG_RUNTIME_DIR).
package configtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// M runs the tests of a package, like [testing.M].
type M struct{ tests *testing.M }

// With returns m with a settings directory of its own.
func With(m *testing.M) M { return M{m} }

// prefix begins the name of every such directory.
const prefix = "gorun-settings-"

// Run runs the tests and returns their exit code. A test binary that was started by a test uses the directory of that test.
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
	if theirs, err := os.UserConfigDir(); err == nil && os.Getenv("GOENV") == "" { // the go command keeps its settings
		_ = os.Setenv("GOENV", filepath.Join(theirs, "go", "env"))
	}
	_ = os.Setenv("XDG_CONFIG_HOME", settings) // fails only for malformed names
	_ = os.Setenv("XDG_RUNTIME_DIR", settings)
	return m.tests.Run()
}

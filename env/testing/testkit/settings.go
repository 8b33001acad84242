package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tests are those of a package. Their Run is like that of [testing.M].
type Tests struct{ m *testing.M }

// OwnSettings gives the tests of a package, and the programs that they start, a settings directory of their own (XDG_CONFIG_HOME), so
// that they do not touch the user's. Running jobs have their sockets there, too (XDG_RUNTIME_DIR).
func OwnSettings(m *testing.M) Tests { return Tests{m} }

// settingsPrefix begins the name of every such directory.
const settingsPrefix = "gorun-settings-"

// Run runs the tests and returns their exit code. A test binary that was started by a test uses the directory of that test.
func (t Tests) Run() int {
	if strings.HasPrefix(filepath.Base(os.Getenv("XDG_CONFIG_HOME")), settingsPrefix) {
		return t.m.Run()
	}
	settings, err := os.MkdirTemp("", settingsPrefix+"*")
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
	return t.m.Run()
}

// Package protocoltest finds out whether the protocol between ranks has changed.
package protocoltest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/protocol"
)

var update = flag.Bool("update", false, "write what the protocol is now to testdata")

// Compare compares lines of text about the protocol with what testdata/protocol says of the package under test. It
// fails the test if they have changed and the number of the protocol has not, also with -update.
func Compare(t *testing.T, text string) {
	t.Helper()
	text = fmt.Sprintf("version %d\n%s", protocol.Version, text)
	file := filepath.Join("testdata", "protocol")
	was, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	old, now, changed := firstChange(string(was), text)
	switch numbered := strings.HasPrefix(now, "version "); {
	case !changed:
	case numbered && *update:
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	case numbered:
		t.Fatal("testdata/protocol is of another version: run this test with -update")
	default:
		t.Fatalf("the protocol has changed: %q was %q. Ranks of both builds would meet, and disagree.\n"+
			"Raise Version in comm/internal/protocol. Then run the tests whose names begin with TestProtocol with -update", now, old)
	}
}

// firstChange returns the first line that differs.
func firstChange(old, now string) (was, is string, changed bool) {
	for old != now {
		was, old, _ = strings.Cut(old, "\n")
		is, now, _ = strings.Cut(now, "\n")
		if was != is {
			return was, is, true
		}
	}
	return "", "", false
}

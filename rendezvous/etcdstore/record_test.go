package etcdstore

import (
	"strings"
	"testing"

	"github.com/gorun/gorun/env/alloctest"
)

// FuzzPieces: the chunks of a record are below the store's own root, in a directory of their own. Deleting a record deletes nothing
// else.
func FuzzPieces(f *testing.F) {
	const root = "/p/chunks/"
	for _, text := range []string{"v", "c2 /p/chunks/A/", "c2 ", "c2 /p/chunks/", "c2 /p/chunks//", "c-1 /p/chunks/A/", "c9 /p/values/", "c1 /p/chunks/A/B/"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var prefix string
		var n int
		alloctest.AtMost(t, 4*len(text), func() { prefix, n = pieces(text, root) })
		name, below := strings.CutPrefix(prefix, root)
		if n < 0 || (n == 0) != (prefix == "") || n > 0 && (!below || len(name) < 2 || strings.Count(name, "/") != 1 || !strings.HasSuffix(name, "/")) {
			t.Errorf("%q is in %d chunks in %q", text, n, prefix)
		}
	})
}

package transport

import (
	"bytes"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// FuzzHello lets a caller that knows the token say anything.
func FuzzHello(f *testing.F) {
	const world, rank, ranks = 7, 1, 4
	f.Add(Hello{World: world, From: 2, To: rank}.Bytes())
	f.Add(Hello{World: world, From: 1 << 31, To: rank}.Bytes())
	f.Add(Hello{World: world + 1, From: 1, To: rank}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HelloSize {
			return
		}
		testkit.AllocatesAtMost(t, 1<<10, func() { _, _ = ParseHello(b, world, rank, ranks) })
		h, err := ParseHello(b, world, rank, ranks)
		if err == nil && (h.From >= ranks || h.From == rank || !bytes.Equal(b[:HelloSize], h.Bytes())) {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}

package objects

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func FuzzOpenList(f *testing.F) {
	testkit.WithoutRace(f)
	f.Add([]byte{2, 1, 'a', 0})
	f.Add([]byte{200, 200, 200, 200, 1})
	f.Add(append([]byte{0x80, 0x80, 0x40}, make([]byte, 1<<20)...)) // a million objects of nothing
	f.Fuzz(func(t *testing.T, b []byte) {
		testkit.AllocatesAtMost(t, 0, func() {
			l, err := openList(b)
			total := l.count
			for range l.count {
				obj, good := l.next()
				if total += len(obj); !good {
					t.Errorf("%v has fewer objects than it says", b)
				}
			}
			if err != nil && l.count != 0 || total > len(b) || len(l.rest) > 0 {
				t.Errorf("%v was read as %v, %v", b, l, err)
			}
		})
	})
}

// What a peer sends may be anything. It is refused before it takes memory.
func TestBytesThatAreNoObject(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":              nil,
		"long array":           {0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"long map":             {0xba, 0x7f, 0xff, 0xff, 0xff},
		"long text":            {0x7b, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 'a'},
		"without end":          {0x9f, 1, 2, 0xff},
		"deep":                 bytes.Repeat([]byte{0x81}, 1<<20),
		"one and a half":       {1, 0x82},
		"a key that is no key": {0xa1, 0x80, 1},
	} {
		var f Format
		var v any = "as before"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := f.decode(b, &v); err == nil || v != "as before" {
			t.Errorf("%s: got %v, %v", name, v, err)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: took %d bytes", name, n)
		}
	}
}

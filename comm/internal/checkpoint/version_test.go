package checkpoint

import (
	"encoding/binary"
	"testing"
)

// What another rank sends as the entries of a commit is anything.
func FuzzEntries(f *testing.F) {
	good, err := encode([]Entry{{Name: "a", Tree: []byte{1}, Size: 100}, {Name: "b", Size: 3}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{})
	f.Add(binary.BigEndian.AppendUint64([]byte{0x9b}, 1<<60))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		v, err := newVersion(manifest, nil, false)
		if err != nil {
			return
		}
		for _, e := range v.entries {
			if len(e.Bytes) != e.Size {
				t.Fatalf("entry %q has %d bytes, want %d", e.Name, len(e.Bytes), e.Size)
			}
		}
	})
}

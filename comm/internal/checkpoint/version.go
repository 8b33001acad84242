package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gorun/gorun/comm/internal/cborcodec"
)

// An Entry is a variable of a commit.
type Entry struct {
	Name  string
	Tree  []byte // what there is besides Bytes, in an encoding of the program's own: those of Go and Python are trees, with leaves in Bytes
	Size  int    // of Bytes
	Bytes []byte `cbor:"-"`
}

// canonical returns the Tree, encoded such that equal values have equal bytes: Python encodes dicts in any order, and floats in 64 bits. It
// returns a Tree that is not CBOR as it is.
func (e Entry) canonical() []byte {
	var tree any
	if codec.Unmarshal(e.Tree, &tree) == nil {
		if b, err := codec.Marshal(tree); err == nil {
			return b
		}
	}
	return e.Tree
}

// A version is a copy, of one commit, of what has one name.
type version struct {
	id       ID
	agreed   uint64  // the last round that has begun with it
	manifest []byte  // the entries without their Bytes, encoded
	entries  []Entry // their Bytes are in contents, each at a cache line
	contents []byte  // in memory
	memory   *memory
}

var codec = cborcodec.New()

// maxManifest is how many bytes a manifest may have.
const maxManifest = 1 << 30

// encode returns the manifest of entries.
func encode(entries []Entry) ([]byte, error) {
	manifest, err := codec.Marshal(entries)
	if err == nil && len(manifest) > maxManifest {
		err = fmt.Errorf("it takes %d bytes besides slices and arrays: the limit is %d", len(manifest), maxManifest)
	}
	return manifest, err
}

// checkLength returns an error if the manifest that a rank announces is too long.
func checkLength(rank int, length uint64) error {
	if length > maxManifest {
		return argument("rank %d sends entries of %d bytes: the limit is %d", rank, length, maxManifest)
	}
	return nil
}

// newVersion returns a version with the entries of a manifest, whose Bytes are still anything.
func newVersion(manifest []byte, spare *memory, mappable bool) (*version, error) {
	v, size, err := parse(manifest)
	if err != nil {
		return nil, err
	}
	m, err := spare.orNew(size, mappable)
	if err != nil {
		return nil, err
	}
	v.putIn(m, size)
	return v, nil
}

// parse decodes a manifest. It returns a version without memory, and how many bytes its contents need.
func parse(manifest []byte) (v *version, size int, err error) {
	v = &version{manifest: manifest}
	if err := codec.Unmarshal(manifest, &v.entries); err != nil {
		return nil, 0, err
	}
	for _, e := range v.entries {
		if e.Size < 0 || e.Size > 1<<60-size {
			return nil, 0, errors.New("its entries have impossible sizes")
		}
		size += aligned(e.Size)
	}
	return v, size, nil
}

// putIn makes the first bytes of m the contents of v.
func (v *version) putIn(m *memory, size int) {
	v.memory, v.contents = m, m.all[:size]
	at := 0
	for i := range v.entries {
		e := &v.entries[i]
		e.Bytes = v.contents[at:][:e.Size:e.Size]
		at += aligned(e.Size)
	}
}

// aligned is n rounded up to a cache line.
func aligned(n int) int { return (n + 63) &^ 63 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksums returns one for each entry, by name.
func (v *version) checksums() map[string]uint32 {
	sums := make(map[string]uint32)
	for _, e := range v.entries {
		sums[e.Name] = crc32.Update(crc32.Checksum(e.canonical(), castagnoli), castagnoli, e.Bytes)
	}
	return sums
}

package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/cborcodec"
	"github.com/gorun/gorun/comm/internal/shm/segment"
)

// An Entry is a variable of a commit.
type Entry struct {
	Name  string
	Tree  []byte // what there is besides Bytes, in an encoding of the program's own: those of Go and Python are trees, with leaves in Bytes
	Size  int    // of Bytes
	Bytes []byte `cbor:"-"`
}

// canonical is the Tree. If that is CBOR, equal values have equal bytes: Python's dicts are in any order, and its floats long.
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

// manifestFrom returns room for a manifest of so many bytes, which a rank sends.
func manifestFrom(rank int, length uint64) ([]byte, error) {
	if length > maxManifest {
		return nil, argument("rank %d sends entries of %d bytes: the limit is %d", rank, length, maxManifest)
	}
	return make([]byte, length), nil
}

// newVersion returns a version with the entries of a manifest, whose Bytes are still anything. They are in spare if that is large enough,
// otherwise in new memory, and spare is freed.
func newVersion(manifest []byte, spare *memory) (*version, error) {
	v := &version{manifest: manifest}
	if err := codec.Unmarshal(manifest, &v.entries); err != nil {
		return nil, err
	}
	size := 0
	for _, e := range v.entries {
		if e.Size < 0 || e.Size > 1<<60-size {
			return nil, errors.New("its entries have impossible sizes")
		}
		size += aligned(e.Size)
	}
	if v.memory = spare; spare == nil || len(spare.all) < size {
		var err error
		if v.memory, err = newMemory(size); err != nil {
			return nil, err
		}
		spare.free()
	}
	v.contents = v.memory.all[:size]
	at := 0
	for i := range v.entries {
		e := &v.entries[i]
		e.Bytes = v.contents[at:][:e.Size:e.Size]
		at += aligned(e.Size)
	}
	return v, nil
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

// A memory has room for the contents of a version, and of others after that. It is no memory of Go's, so that a program in C can have its
// address. It is unmapped when nothing refers to it.
type memory struct {
	all   []byte
	unmap runtime.Cleanup
}

// newMemory returns a memory of so many bytes.
func newMemory(size int) (*memory, error) {
	m := new(memory)
	if size == 0 {
		return m, nil
	}
	all, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("no memory for %d bytes: %w", size, os.NewSyscallError("mmap", err))
	}
	segment.AdviseLarge(all)
	m.all = all
	m.unmap = runtime.AddCleanup(m, func(all []byte) { _ = unix.Munmap(all) }, all)
	return m, nil
}

// free unmaps m at once: a state that grows with each commit would take many times its size until Go collects garbage, of which it makes little.
func (m *memory) free() {
	if m != nil && m.all != nil {
		m.unmap.Stop()
		_ = unix.Munmap(m.all)
		m.all = nil
	}
}

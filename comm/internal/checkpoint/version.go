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
	Node  []byte // what the program needs to know besides Bytes, in an encoding of its own
	Size  int    // of Bytes
	Bytes []byte `cbor:"-"`
}

// A version is one copy of what has a name.
type version struct {
	id       ID
	agreed   uint64  // the last round that has begun with it
	manifest []byte  // the entries, encoded
	entries  []Entry // their Bytes are in memory
	memory   *memory
}

var codec = cborcodec.New()

// most is how many bytes of entries there are at most, without their Bytes.
const most = 1 << 30

func encode(entries []Entry) ([]byte, error) {
	manifest, err := codec.Marshal(entries)
	if err == nil && len(manifest) > most {
		err = fmt.Errorf("it takes %d bytes besides slices and arrays: the limit is %d", len(manifest), most)
	}
	return manifest, err
}

// newVersion returns a version with the entries of a manifest. It uses room if that is large enough.
func newVersion(manifest []byte, room *memory) (*version, error) {
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
	if v.memory = room; room == nil || len(room.all) < size {
		var err error
		if v.memory, err = newMemory(size); err != nil {
			return nil, err
		}
	}
	v.memory.used = size
	at := 0
	for i := range v.entries {
		e := &v.entries[i]
		e.Bytes = v.memory.all[at:][:e.Size:e.Size]
		at += aligned(e.Size)
	}
	return v, nil
}

// aligned is n rounded up to a cache line.
func aligned(n int) int { return (n + 63) &^ 63 }

// contents are the Bytes of all entries, and what is between them.
func (v *version) contents() []byte { return v.memory.all[:v.memory.used] }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksums returns one for each entry.
func (v *version) checksums() map[string]uint32 {
	sums := make(map[string]uint32)
	for _, e := range v.entries {
		sums[e.Name] = crc32.Update(crc32.Checksum(e.Node, castagnoli), castagnoli, e.Bytes)
	}
	return sums
}

// A memory holds a version. It is no memory of Go's, so that a program in C can have its address. It is unmapped when nothing refers to it.
type memory struct {
	all  []byte
	used int
}

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
	runtime.AddCleanup(m, func(all []byte) { _ = unix.Munmap(all) }, all)
	return m, nil
}

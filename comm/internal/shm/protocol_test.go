//go:build !schedule

package shm

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/testing/protocoltest"
	"github.com/gorun/gorun/comm/internal/wait"
)

// TestProtocolInMemory: where data lies in a segment, but for the pages to which its parts are rounded, and how buffers are cut.
func TestProtocolInMemory(t *testing.T) {
	var out strings.Builder
	var c control
	var h header
	var r OpRecord
	fmt.Fprintln(&out, "header", unsafe.Sizeof(h), unsafe.Offsetof(h.sleepers))
	fmt.Fprintln(&out, "control", unsafe.Sizeof(c), unsafe.Offsetof(c.clock), unsafe.Offsetof(c.flag), unsafe.Offsetof(c.export),
		unsafe.Offsetof(c.records), unsafe.Offsetof(c.wait))
	fmt.Fprintln(&out, "record", unsafe.Sizeof(r), "export", unsafe.Sizeof(c.export), "waiting", unsafe.Sizeof(wait.State{}), "LL buffer", unsafe.Sizeof(llBuffer{}))
	fmt.Fprintln(&out, "LL", choice.LLEntrySize, llBufferSize, llEntries, recordsPerRank, mostSlotsInUse, choice.Registered.Least, choice.Registered.LeastRoot, spreadBlock)
	for n := 2; n <= 64; n *= 2 {
		each := slotPerRank(slotSize(n), n)
		fmt.Fprintf(&out, "%d ranks: staging %d, slots of %d, for each %d\n", n, stagingSize(n), slotSize(n), each)
		team := &Team{n: n}
		for _, bytes := range []int{0, 1, 100, 5000, 100_000, 3 << 20} {
			size, count := team.chunking(bytes, slotSize(n))
			part, parts := team.chunkingOf(bytes, each, 12)
			fmt.Fprintf(&out, "%d bytes: %d chunks of %d; in elements of 12 bytes, for each rank: %d of %d\n", bytes, count, size, parts, part)
		}
	}
	protocoltest.Compare(t, out.String())
}

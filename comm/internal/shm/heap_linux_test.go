package shm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// heap returns a heap that others can get at.
func heap(t testing.TB) (*Heap, *Desk) {
	t.Helper()
	d := desk(t)
	h := NewHeap(d, secret)
	h.Hold()
	t.Cleanup(h.Release)
	return h, d
}

// allocate allocates, or fails the test.
func allocate(t testing.TB, h *Heap, n int) []byte {
	t.Helper()
	mem, err := h.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(mem) != n || cap(mem) != n {
		t.Fatalf("got %d bytes with room for %d, want %d", len(mem), cap(mem), n)
	}
	return mem
}

func start(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }

func TestHeap(t *testing.T) {
	h, d := heap(t)
	rng := rand.New(rand.NewPCG(1, 1))
	type kept struct {
		mem  []byte
		mark byte
	}
	var all []kept
	for i := range 300 {
		if len(all) > 20 || len(all) > 0 && rng.IntN(2) == 0 {
			k := rng.IntN(len(all))
			for _, b := range []byte{all[k].mem[0], all[k].mem[len(all[k].mem)-1]} {
				if b != all[k].mark {
					t.Fatalf("step %d: %d has become %d", i, all[k].mark, b)
				}
			}
			if h.Free(unsafe.Add(start(all[k].mem), 1)) || !h.Free(start(all[k].mem)) || h.Free(start(all[k].mem)) {
				t.Fatalf("step %d: what can be given back is not what has been allocated", i)
			}
			all = slices.Delete(all, k, k+1)
			continue
		}
		mem := allocate(t, h, 1+rng.IntN(1<<rng.IntN(24)))
		if zeros := bytes.Count(mem, []byte{0}); zeros < len(mem) {
			t.Fatalf("%d of %d bytes are zero", zeros, len(mem))
		}
		if at := uintptr(start(mem)); at%4096 != 0 || len(mem) >= largePage && at%largePage != 0 {
			t.Fatalf("%d bytes begin at %#x", len(mem), at)
		}
		mark := byte(1 + rng.IntN(255))
		copy(mem, bytes.Repeat([]byte{mark}, len(mem)))
		all = append(all, kept{mem, mark})
	}
	for _, k := range all {
		from := rng.IntN(len(k.mem))
		mem := k.mem[from:]
		at, ok := h.find(mem)
		if !ok {
			t.Fatal("a part of an allocation is not found")
		}
		theirs, err := h.reach(d.Address(), at.segment)
		if err != nil {
			t.Fatal(err)
		}
		same, err := within(theirs, at.offset, part{n: len(mem)})
		if err != nil || !bytes.Equal(same, mem) || start(same) == start(mem) {
			t.Errorf("others find something else: %v", err)
		}
	}
	if _, ok := h.find(make([]byte, 10)); ok {
		t.Error("ordinary memory has been found")
	}
	if n := len(h.areas); n > 4 {
		t.Errorf("it has %d areas", n)
	}
}

func TestLargeMemoryIsInLargePages(t *testing.T) {
	h, _ := heap(t)
	mem := allocate(t, h, 2*largePage+10)
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(smaps), fmt.Sprintf("\n%x-", start(mem)))
	_, rest, _ = strings.Cut(rest, "\nShmemPmdMapped:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	if kib == 2*largePage>>10 {
		return
	}
	if err := unix.Madvise(mem[:2*largePage], unix.MADV_COLLAPSE); err != nil {
		t.Skip("this system has none: ", err)
	}
	t.Errorf("%d KiB of %d bytes are in large pages", kib, len(mem))
}

// What others say of their memory is not trusted.
func TestPlacesOutOfBounds(t *testing.T) {
	mem := make([]byte, 100)
	for _, c := range []struct {
		offset uint64
		p      part
		ok     bool
	}{
		{0, part{n: 100}, true}, {100, part{}, true}, {40, part{at: 20, n: 40}, true},
		{0, part{n: 101}, false}, {101, part{}, false}, {40, part{at: 21, n: 40}, false},
		{math.MaxUint64, part{n: 2}, false}, {math.MaxUint64 - 10, part{at: 20, n: 40}, false},
	} {
		got, err := within(mem, c.offset, c.p)
		if ok := err == nil; ok != c.ok || ok && len(got) != c.p.n {
			t.Errorf("%+v from %d on: got %d bytes, %v", c.p, c.offset, len(got), err)
		}
	}
}

func TestMemoryThatThereIsNot(t *testing.T) {
	h, d := heap(t)
	for _, n := range []int{1 << 46, math.MaxInt} {
		if _, err := h.Alloc(n); err == nil || !strings.Contains(err.Error(), "cannot allocate memory") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := h.reach(d.Address(), 1); err == nil {
		t.Error("got a segment that there is not")
	}
	allocate(t, h, 1) // goes on
}

// After a failure nothing is allocated where others may still write.
func TestSpoiltMemoryIsNotUsedAgain(t *testing.T) {
	h, _ := heap(t)
	old := allocate(t, h, 100)
	h.Spoil()
	if !h.Free(start(old)) {
		t.Error("what is spoilt cannot be given back")
	}
	if young := allocate(t, h, 100); start(old) == start(young) {
		t.Error("spoilt memory is used again")
	}
}

// Nothing is left of a heap whose last user has released it, on neither side.
func TestReleaseLeavesNothing(t *testing.T) {
	maps, fds := leftovers(t)
	d := desk(t)
	h, other := NewHeap(d, secret), NewHeap(nil, secret)
	for range 2 {
		h.Hold()
	}
	other.Hold()
	for _, n := range []int{1, 5 << 20, 100 << 20} {
		at, _ := h.find(allocate(t, h, n))
		if _, err := other.reach(d.Address(), at.segment); err != nil {
			t.Fatal(err)
		}
	}
	h.Release()
	allocate(t, h, 10)
	h.Release()
	other.Release()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if m, f := leftovers(t); m > maps || f > fds {
		t.Errorf("from %d to %d mappings, from %d to %d descriptors", maps, m, fds, f)
	}
	if _, err := h.Alloc(1); !errors.Is(err, ErrGone) {
		t.Errorf("after the end: %v", err)
	}
}

// leftovers counts mappings of segments, and descriptors of these and of sockets.
func leftovers(t *testing.T) (maps, fds int) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.Contains(to, "memfd") || strings.Contains(to, "socket") {
			fds++
		}
	}
	return bytes.Count(text, []byte("memfd:gorun")), fds
}

// sharing lets the ranks of teams use each other's heaps, and returns these.
func sharing(t testing.TB, teams []*Team) []*Heap {
	heaps, desks := make([]*Heap, len(teams)), make([]string, len(teams))
	for r := range teams {
		var d *Desk
		heaps[r], d = heap(t)
		desks[r] = d.Address()
	}
	for r, team := range teams {
		team.Share(heaps[r], desks)
	}
	return heaps
}

// someWhere puts buffers into h, if they are to be shared, a little after the start of a page, and gives them back in the end.
func someWhere(t testing.TB, h *Heap, shared bool, shift int) (put memory, giveBack func()) {
	if !shared {
		return ordinary, func() {}
	}
	var all [][]byte
	put = func(buf []byte) []byte {
		mem := allocate(t, h, len(buf)+shift+1)
		all = append(all, mem)
		copy(mem[shift:], buf)
		return mem[shift : shift+len(buf)]
	}
	return put, func() {
		for _, mem := range all {
			if !h.Free(start(mem)) {
				t.Error("cannot be given back")
			}
		}
	}
}

// Ranks have buffers in heaps, or not, in any combination.
func TestOperationsOnHeaps(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := crew(t, n)
		heaps := sharing(t, teams)
		seq := uint64(0)
		for _, op := range operations {
			for _, size := range []int{20_000, 70_001} {
				for who := range 1 << n { // bits: ranks whose buffers are in heaps
					seq++
					t.Run(fmt.Sprintf("%s/%d bytes/%0*b", op.name, size, n, who), func(t *testing.T) {
						together(t, teams, func(team *Team) error {
							put, giveBack := someWhere(t, heaps[team.me], who>>team.me&1 != 0, int(seq)%3*8)
							defer giveBack()
							team.Begin(seq, Call{What: seq}, 0)
							return op.run(team, put, seq, size, int(seq)%n, reductions[[]string{"compose", "fold"}[seq/2%2]])
						})
					})
				}
			}
		}
	}
}

// Ranks that run ahead, or fall behind, take each other's buffers for what they are.
func TestOperationsOnHeapsInARow(t *testing.T) {
	for _, n := range []int{2, 4} {
		teams := crew(t, n)
		heaps := sharing(t, teams)
		together(t, teams, func(team *Team) error {
			rng := rand.New(rand.NewPCG(7, 8)) // the same on all ranks
			for seq := uint64(1); seq <= 300; seq++ {
				op := operations[rng.IntN(len(operations))]
				size, root, slow, who := rng.IntN(1<<rng.IntN(18)), rng.IntN(n), rng.IntN(n), rng.IntN(1<<n)
				if seq%50 == 0 && slow == team.me {
					sleepOn(new(uint32), 0, time.Millisecond) // let others go first
				}
				put, giveBack := someWhere(t, heaps[team.me], who>>team.me&1 != 0, rng.IntN(100))
				team.Begin(seq, Call{What: seq}, 0)
				err := op.run(team, put, seq, size, root, reductions["compose"])
				giveBack()
				if err != nil {
					return fmt.Errorf("%s #%d of %d bytes: %w", op.name, seq, size, err)
				}
			}
			return nil
		})
	}
}

// What a rank has shown, and then given up, is nothing that others have got.
func TestAbandonedBuffersAreNotUsed(t *testing.T) {
	teams := crew(t, 2)
	heaps := sharing(t, teams)
	told := errors.New("told that the other has failed")
	bufs, all := make([][]byte, 2), part{n: 100_000}
	for r, team := range teams {
		team.lasting = func(int, Doze) error { return told }
		bufs[r] = allocate(t, heaps[r], all.n)
		team.Begin(1, Call{What: 1}, 0)
		team.show(bufs[r], all)
	}
	mem, err := teams[1].look(0, all)
	if err != nil || start(mem) == start(bufs[0]) {
		t.Fatalf("got %p, %v", start(mem), err)
	}
	teams[0].Abandon()
	if err := teams[1].used(taken(0)); !errors.Is(err, told) {
		t.Errorf("got %v", err)
	}
	if mem, err := teams[1].look(0, all); mem != nil || !errors.Is(err, told) {
		t.Errorf("it is still shown: %v", err)
	}
	before := start(bufs[0])
	if heaps[0].Free(before); start(allocate(t, heaps[0], all.n)) == before {
		t.Error("memory that others may write to is used again")
	}
}

// throughSlots are the operations of groups that are on several machines, in which a team has but a part.
var throughSlots = map[string]bool{"reduce parts": true, "share parts": true, "gather parts": true, "one after the other": true}

// Where all ranks of a group on one machine have their buffers in heaps, nothing goes through slots.
func TestBuffersInHeapsNeedNoSlots(t *testing.T) {
	for _, n := range []int{2, 3} {
		teams := crew(t, n)
		heaps := sharing(t, teams)
		for i, op := range operations[1:] { // a barrier has no buffers
			if throughSlots[op.name] {
				continue
			}
			together(t, teams, func(team *Team) error {
				put, giveBack := someWhere(t, heaps[team.me], true, 0)
				defer giveBack()
				team.Begin(uint64(i+1), Call{What: uint64(i + 1)}, 0)
				err := op.run(team, put, uint64(i+1), 50_000, 0, reductions["sum"])
				if team.backed != 0 {
					t.Errorf("%s of %d ranks has used slots", op.name, n)
				}
				return err
			})
		}
	}
}

// In a crowd the root of a short broadcast does not wait for others to have their turns, wherever its buffer lies.
func TestRootLeavesACrowd(t *testing.T) {
	teams := crew(t, 2)
	heaps := sharing(t, teams)
	told := errors.New("told that it waits")
	teams[0].crowded, teams[0].shared = true, false
	teams[0].lasting = func(int, Doze) error { return told }
	for i, c := range []struct {
		size int
		err  error
	}{{leastInCrowd - 1, nil}, {leastInCrowd, told}} {
		buf := allocate(t, heaps[0], c.size)
		copy(buf, input(1, 0, c.size))
		teams[0].Begin(uint64(i+1), Call{}, 0)
		if err := teams[0].Broadcast(buf, 0); !errors.Is(err, c.err) {
			t.Fatalf("the root of %d bytes, alone: %v", c.size, err)
		} else if err != nil {
			continue
		}
		got := allocate(t, heaps[1], c.size)
		teams[1].Begin(uint64(i+1), Call{}, 0)
		if err := same(teams[1].Broadcast(got, 0), got, buf); err != nil {
			t.Error(err)
		}
	}
}

// What ranks get is put where they want it, wherever that has been.
func TestOutputsInHeapsNeedNoSlots(t *testing.T) {
	const n = 50_000
	teams := crew(t, 3)
	heaps := sharing(t, teams)
	together(t, teams, func(team *Team) error {
		out := allocate(t, heaps[team.me], n*team.n)
		team.Begin(1, Call{What: 1}, 0)
		if err := same(team.AllGather(out, input(1, team.me, n)), out, concat(1, team.n, n)); err != nil {
			return err
		}
		var want []byte
		for r := range team.n {
			want = append(want, block(input(2, r, n*team.n), team.me, team.n)...)
		}
		team.Begin(2, Call{What: 2}, 0)
		err := same(team.AllToAll(out, input(2, team.me, n*team.n)), out, want)
		if team.backed != 0 {
			t.Error("slots have been used")
		}
		return err
	})
}

// Ranks that have looked at a buffer and then done without it do not mind that whoever showed it goes on.
func TestSomeShowAndGoOn(t *testing.T) {
	const size = 200_000
	teams := crew(t, 4)
	heaps := sharing(t, teams)
	together(t, teams, func(team *Team) error {
		buf := make([]byte, size)
		if team.me != 1 {
			buf = allocate(t, heaps[team.me], size)
		}
		for seq := uint64(1); seq <= 1000; seq++ {
			team.Begin(seq, Call{What: 1}, 0)
			if err := team.Broadcast(buf, 3); err != nil {
				return fmt.Errorf("broadcast #%d: %w", seq, err)
			}
		}
		return nil
	})
}

package shm

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/wait"
)

// newTeams is the teams of n ranks, which are goroutines here. Each has its own mapping of the segment.
func newTeams(t testing.TB, n int) []*Team {
	t.Helper()
	first, err := segment.Create(Size(n))
	if err != nil {
		t.Fatal(err)
	}
	segments, teams := make([]*segment.Segment, n), make([]*Team, n)
	for r := range teams {
		s := first
		if r > 0 {
			if s, err = segment.Open(dup(t, first.FD()), Size(n)); err != nil {
				t.Fatal(err)
			}
		}
		segments[r] = s
	}
	for r, s := range segments {
		if teams[r], err = New(s, n, r, wait.Processors{CPUs: runtime.GOMAXPROCS(0), Ranks: n, SameProcess: true}, choice.Chooser{Table: choice.SharedMemory}, sleeping); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, team := range teams {
			if err := team.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return teams
}

// sleeping waits for as long as it takes.
func sleeping(_ int, w wait.LongWait) error {
	w.Park()
	return nil
}

func dup(t testing.TB, fd int) int {
	t.Helper()
	fd, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// together runs f on every rank.
func together(t testing.TB, teams []*Team, f func(team *Team) error) {
	t.Helper()
	var wg sync.WaitGroup
	for r, team := range teams {
		wg.Go(func() {
			if err := f(team); err != nil {
				t.Errorf("rank %d of %d: %v", r, len(teams), err)
			}
		})
	}
	wg.Wait()
}

// sumBytes adds bytes. compose is associative but not commutative: a value is a function x -> a x + b, with a byte for a and for b.
func sumBytes(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func compose(dst, a, b []byte) {
	for i := 0; i < len(dst); i += 2 {
		m, c := a[i]*b[i], b[i]*a[i+1]+b[i+1]
		dst[i], dst[i+1] = m, c
	}
}

var reductions = map[string]*Reduction{
	"sum":     {Elem: 1, Kernel: sumBytes},
	"compose": {Elem: 2, Kernel: compose},
	"fold":    {Elem: 2, Kernel: compose, Fold: composeAll},
}

// composeAll composes in memory of its own, as dst may be any of the sources.
func composeAll(dst []byte, sources [][]byte) {
	sum := slices.Clone(sources[0])
	for _, s := range sources[1:] {
		compose(sum, sum, s)
	}
	copy(dst, sum)
}

// noise is random bytes, out of which inputs are cut.
var noise = func() []byte {
	b := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

// input is what rank r has in operation seq.
func input(seq uint64, r, n int) []byte {
	b := make([]byte, n)
	at := rand.New(rand.NewPCG(seq, uint64(r))).IntN(len(noise) / 2)
	for done := 0; done < n; at = 0 {
		done += copy(b[done:], noise[at:])
	}
	return b
}

// combined is the reduction of all inputs, in order of rank.
func combined(seq uint64, ranks, n int, red *Reduction) []byte {
	sum := input(seq, 0, n)
	for r := 1; r < ranks; r++ {
		red.Kernel(sum, sum, input(seq, r, n))
	}
	return sum
}

func concat(seq uint64, ranks, n int) []byte {
	var all []byte
	for r := range ranks {
		all = append(all, input(seq, r, n)...)
	}
	return all
}

// memory puts a buffer somewhere.
type memory func([]byte) []byte

func ordinary(buf []byte) []byte { return buf }

// visible is what a rank sees in a buffer of its own.
var visible = func(buf []byte) []byte { return buf }

// operations carry out one operation on a rank, on blocks of n bytes, and compare the result with the right one. in decides where
// buffers lie.
var operations = []operation{
	{"barrier", func(t *Team, _ memory, _ uint64, _, _ int, _ *Reduction) error { return t.Barrier() }},
	{"broadcast", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		buf := in(input(seq, t.me, n))
		return same(t.Broadcast(buf, root), buf, input(seq, root, n))
	}},
	{"gather", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		if t.me != root {
			return t.Gather(nil, in(input(seq, t.me, n)), root)
		}
		out := in(make([]byte, n*t.n))
		return same(t.Gather(out, in(input(seq, t.me, n)), root), out, concat(seq, t.n, n))
	}},
	{"scatter", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		var all []byte
		if t.me == root {
			all = in(concat(seq, t.n, n))
		}
		out := in(make([]byte, n))
		return same(t.Scatter(out, all, root), out, input(seq, t.me, n))
	}},
	{"all-gather", func(t *Team, in memory, seq uint64, n, _ int, _ *Reduction) error {
		out := in(make([]byte, n*t.n))
		return same(t.AllGather(out, in(input(seq, t.me, n))), out, concat(seq, t.n, n))
	}},
	{"all-to-all", func(t *Team, in memory, seq uint64, n, _ int, _ *Reduction) error {
		out := in(make([]byte, n*t.n))
		var want []byte
		for r := range t.n {
			want = append(want, block(input(seq, r, n*t.n), t.me, t.n)...)
		}
		return same(t.AllToAll(out, in(input(seq, t.me, n*t.n))), out, want)
	}},
	{"all-reduce", func(t *Team, in memory, seq uint64, n, _ int, red *Reduction) error {
		n *= red.Elem
		buf := in(input(seq, t.me, n))
		return same(t.AllReduce(buf, buf, red), buf, combined(seq, t.n, n, red))
	}},
	{"reduce", func(t *Team, in memory, seq uint64, n, root int, red *Reduction) error {
		n *= red.Elem
		buf := in(input(seq, t.me, n))
		want := slices.Clone(visible(buf))
		if t.me == root {
			want = combined(seq, t.n, n, red)
		}
		return same(t.Reduce(buf, buf, red, root), buf, want)
	}},
	{"reduce-scatter", func(t *Team, in memory, seq uint64, n, _ int, red *Reduction) error {
		n *= red.Elem
		all := in(input(seq, t.me, n*t.n))
		out := in(make([]byte, n))
		return same(t.ReduceScatter(out, all, red), out, block(combined(seq, t.n, n*t.n, red), t.me, t.n))
	}},
	{"reduce-scatter-v", func(t *Team, in memory, seq uint64, n, root int, red *Reduction) error {
		buf := in(input(seq, t.me, n*red.Elem))
		out := buf
		if seq%2 == 0 {
			out = in(make([]byte, len(buf)))
		}
		parts := unevenParts(len(buf), t.n, root, red.Elem)
		want, own := slices.Clone(visible(out)), parts[t.me]
		copy(rangeOf(want, own), rangeOf(combined(seq, t.n, len(buf), red), own))
		_, result := t.Slices(out, parts)
		return same(t.ReduceScatterV(result, Ranged(buf, parts, 1), red), out, want)
	}},
	{"all-gather-v", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		buf := in(input(seq, t.me, n))
		return same(t.AllGatherV(t.Slices(buf, unevenParts(n, t.n, root, 1))), buf, joined(seq, t.n, n, root))
	}},
	{"gather slices", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		buf := in(input(seq, t.me, n))
		want := slices.Clone(visible(buf))
		if t.me == root {
			want = joined(seq, t.n, n, root)
		}
		all, mine := t.Slices(buf, unevenParts(n, t.n, root, 1))
		return same(t.GatherSlices(all, mine, root), buf, want)
	}},
	{"gather-v", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		parts := unevenParts(n, t.n, root, 1)
		mine := in(rangeOf(input(seq, t.me, n), parts[t.me]))
		if t.me != root {
			return t.GatherV(Blocks{}, mine, root)
		}
		out := make([]byte, n)
		copy(rangeOf(out, parts[root]), rangeOf(input(seq, root, n), parts[root]))
		buf := in(out)
		outs, own := t.Slices(buf, parts)
		if seq%2 == 0 {
			mine = own
		}
		return same(t.GatherV(outs, mine, root), buf, joined(seq, t.n, n, root))
	}},
	{"scatter-v", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		parts := unevenParts(n, t.n, root, 1)
		var ins Blocks
		out := in(make([]byte, parts[t.me].Len()))
		if t.me == root {
			var own []byte
			if ins, own = t.Slices(in(input(seq, root, n)), parts); seq%2 == 0 {
				out = own
			}
		}
		return same(t.ScatterV(out, ins, root), out, rangeOf(input(seq, root, n), parts[t.me]))
	}},
	{"all-to-all-v", func(t *Team, in memory, seq uint64, n, root int, _ *Reduction) error {
		parts := func(r int) []plan.Range { return unevenParts(n, t.n, (root+r)%t.n, 1) }
		var want []byte
		var places []plan.Range
		for r := range t.n {
			want = append(want, rangeOf(input(seq, r, n), parts(r)[t.me])...)
			places = append(places, plan.Range{Lo: len(want) - parts(r)[t.me].Len(), Hi: len(want)})
		}
		buf := in(make([]byte, len(want)))
		outs, _ := t.Slices(buf, places)
		ins, _ := t.Slices(in(input(seq, t.me, n)), parts(t.me))
		return same(t.AllToAllV(outs, ins), buf, want)
	}},
	{"one after the other", func(t *Team, in memory, seq uint64, n, root int, red *Reduction) error {
		buf := in(input(seq, t.me, n*red.Elem))
		parts := unevenParts(len(buf), t.n, root, red.Elem)
		all, mine := t.Slices(buf, parts)
		err := t.ReduceScatterV(mine, all, red)
		t.Next()
		if err == nil {
			err = t.Barrier()
		}
		t.Next()
		if err == nil {
			err = t.AllGatherV(all, mine)
		}
		return same(err, buf, combined(seq, t.n, len(buf), red))
	}},
	{"all-reduce apart", func(t *Team, in memory, seq uint64, n, _ int, red *Reduction) error {
		n *= red.Elem
		out, buf := in(make([]byte, n)), in(input(seq, t.me, n))
		return errors.Join(same(t.AllReduce(out, buf, red), out, combined(seq, t.n, n, red)), same(nil, buf, input(seq, t.me, n)))
	}},
	{"reduce apart", func(t *Team, in memory, seq uint64, n, root int, red *Reduction) error {
		n *= red.Elem
		buf := in(input(seq, t.me, n))
		out, want := buf, input(seq, t.me, n)
		if t.me == root {
			out, want = in(make([]byte, n)), combined(seq, t.n, n, red)
		}
		return errors.Join(same(t.Reduce(out, buf, red, root), out, want), same(nil, buf, input(seq, t.me, n)))
	}},
}

// unevenParts cuts so many bytes into parts for n ranks, of whole values. The first has none, and with root 0 only the last has
// any.
func unevenParts(bytes, n, root, elem int) []plan.Range {
	parts := make([]plan.Range, n)
	if root == 0 {
		parts[n-1].Hi = bytes
		return parts
	}
	lo := 0
	for r := 1; r < n; r++ {
		hi := lo + (bytes-lo)/elem*r/n*elem
		if r == n-1 {
			hi = bytes
		}
		parts[r] = plan.Range{Lo: lo, Hi: hi}
		lo = hi
	}
	return parts
}

func rangeOf(buf []byte, r plan.Range) []byte { return buf[r.Lo:r.Hi] }

// joined is the vector of all ranks' parts.
func joined(seq uint64, ranks, n, root int) []byte {
	var all []byte
	for r := range ranks {
		all = append(all, rangeOf(input(seq, r, n), unevenParts(n, ranks, root, 1)[r])...)
	}
	return all
}

func same(err error, got, want []byte) error {
	got = visible(got)
	if err == nil && !bytes.Equal(got, want) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		return &wrongResult{i, len(got), got[i], want[i]}
	}
	return err
}

// A wrongResult is a result of an operation that has returned no error.
type wrongResult struct {
	at, of    int
	got, want byte
}

func (w *wrongResult) Error() string {
	return fmt.Sprintf("byte %d of %d is %d, want %d", w.at, w.of, w.got, w.want)
}

// TestAbandonBeforeTheFirstOperation: the first call of a group may fail before it begins an operation of the team.
func TestAbandonBeforeTheFirstOperation(t *testing.T) {
	teams := newTeams(t, 2)
	teams[0].Abandon()
	if s := teams[0].ranks[0].export.op; s != 0 {
		t.Errorf("an export is revoked, and there was none: %#x", s)
	}
}

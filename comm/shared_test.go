package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/env/testing/testkit"
)

// allocated is n zeros in the midst of memory of Alloc.
func allocated[T Element](g *Group, n int) []T {
	buf, err := Alloc[T](g, n+5)
	if err != nil {
		panic(err)
	}
	return buf[3 : 3+n]
}

// A block of a buffer of Alloc is in place as one of any other, also for several groups at once, and by I-forms.
func TestBlocksOfAllocatedBuffers(t *testing.T) {
	const n, size = 9000, 4
	inWorldOf(t, size, func(ctx context.Context, g *Group) error {
		me := g.Rank()
		all := allocated[int32](g, size*n)
		own := cut(all, size)[me]
		fill := func() {
			clear(all)
			for i := range own {
				own[i] = int32(me*n + i)
			}
		}
		gathered := func(i int) int32 { return int32(i) }
		fill()
		if err := same("AllGather", AllGather(ctx, g, all, own), all, gathered); err != nil {
			return err
		}
		if err := same("ReduceScatter", ReduceScatter(ctx, g, own, all, Sum), own, func(i int) int32 { return int32(size * (me*n + i)) }); err != nil {
			return err
		}
		fill()
		err := Gather(ctx, g, all, own, 2)
		if me == 2 {
			err = same("Gather", err, all, gathered)
		}
		if err != nil {
			return err
		}
		if err := same("Scatter", Scatter(ctx, g, own, all, 2), own, func(i int) int32 { return int32(me*n + i) }); err != nil {
			return err
		}
		pair, err := Split(ctx, g, me/2, me)
		if err != nil {
			return err
		}
		whole, err := NewGroup(ctx, g, []int{0, 1, 2, 3})
		if err != nil {
			return err
		}
		fill()
		for i := range all {
			all[i] = int32(me + i)
		}
		parts := cut(all, 3)
		works := []*Work{IAllReduce(g, parts[0], Sum), IAllReduce(pair, parts[1], Sum), IReduce(whole, parts[2], Max, 1)}
		for _, w := range works {
			err = errors.Join(err, w.Wait(ctx))
		}
		third := len(parts[0])
		return same("three at once", err, all, func(i int) int32 {
			switch {
			case i < third:
				return int32(0+1+2+3) + int32(4*i)
			case i < 2*third:
				return int32(me/2*4+1) + int32(2*i)
			case me == 1:
				return int32(3 + i)
			default:
				return int32(me + i)
			}
		})
	})
}

// An operation of the caller's own, which may use its operands up, leaves those of others alone.
func TestOwnOperationsOnAllocatedBuffers(t *testing.T) {
	testkit.WithoutRace(t)
	const n = 10_000
	op := NewOp("sum, forgetful", false, func(acc, in []int64) {
		for i := range acc {
			acc[i] += in[i]
			in[i] = -1
		}
	})
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		in, out := allocated[int64](g, 2*n), allocated[int64](g, n)
		for i := range in {
			in[i] = int64(i)
		}
		if err := same("ReduceScatter", ReduceScatter(ctx, g, out, in, op), out, func(i int) int64 { return int64(2 * (g.Rank()*n + i)) }); err != nil {
			return err
		}
		buf := in[:n]
		want := func(i int) int64 { return int64(i) }
		err := Reduce(ctx, g, buf, op, 1)
		if g.Rank() == 1 {
			want = func(i int) int64 { return int64(2 * i) }
		}
		return same("Reduce", err, buf, want)
	})
}

func TestAllocAndFree(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		w.run(func(_ context.Context, g *Group) error {
			buf, err := Alloc[float64](g, 300_000)
			if err != nil {
				return err
			}
			if len(buf) != 300_000 || cap(buf) != len(buf) || uintptr(unsafe.Pointer(&buf[0]))%64 != 0 {
				t.Errorf("%d elements with room for %d at %p", len(buf), cap(buf), buf)
			}
			for i := range buf {
				buf[i] = 1
			}
			for what, wrong := range map[string][]float64{"the midst": buf[1:], "an ordinary slice": make([]float64, 1)} {
				wantArgumentError(t, what, Free(g, wrong))
				wantArgumentError(t, what, MemFree(wrong))
			}
			free := []func([]float64) error{func(buf []float64) error { return Free(g, buf) }, MemFree[float64]}
			if err := free[g.Rank()](buf[:10]); err != nil {
				return err
			}
			wantArgumentError(t, "what is free", free[g.Rank()](buf))
			again, err := Alloc[uint8](g, 2_400_000)
			if i := bytes.IndexFunc(again, func(r rune) bool { return r != 0 }); err != nil || i >= 0 {
				t.Errorf("byte %d of what is used again is %d, %v", i, again[max(i, 0)], err)
			}
			if none, err := Alloc[int8](g, 0); len(none) != 0 || none == nil || err != nil || Free(g, none) != nil {
				t.Errorf("no elements: %v, %v", none, err)
			}
			_, err = Alloc[int64](g, -1)
			wantArgumentError(t, "less than none", err)
			_, err = Alloc[int64](g, math.MaxInt/4)
			wantArgumentError(t, "more than can be", err)
			if _, err = Alloc[int64](g, 1<<50); err == nil || ExitCode(err) != 1 {
				t.Errorf("more than there is: %v", err)
			}
			return nil
		})
		w.close()
		w.run(func(_ context.Context, g *Group) error {
			if _, err := Alloc[int](g, 1); !errors.Is(err, ErrClosed) {
				return fmt.Errorf("after Close: got %w", err)
			}
			return nil
		})
	})
}

func wantArgumentError(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*ArgumentError](err); !ok || ExitCode(err) != 2 {
		t.Errorf("%s: got %v, want an ArgumentError", what, err)
	}
}

// Close lets go of all memory, of this rank and of others, also while something is under way.
func TestCloseFreesWhatIsAllocated(t *testing.T) {
	segments := func() int {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			testkit.Cannot(t, "%v", err)
		}
		return bytes.Count(text, []byte("memfd:gorun"))
	}
	before := segments()
	w := worldOver(t, "shm", 3)
	w.run(func(ctx context.Context, g *Group) error {
		buf, err := Alloc[int32](g, 1<<20)
		if err != nil {
			return err
		}
		part, err := NewGroup(ctx, g, []int{2, 1, 0})
		if err != nil {
			return err
		}
		if err := errors.Join(AllReduce(ctx, g, buf, Sum), AllReduce(ctx, part, buf, Sum)); err != nil {
			return err
		}
		if g.Rank() == 0 {
			return nil
		}
		work := IAllReduce(part, buf, Sum) // to which rank 0 does not come
		work.Done()                        // so that Close does not report it
		if err := errors.Join(part.Close(), g.Close()); err != nil {
			return err
		}
		if err := work.Wait(ctx); err == nil {
			return errors.New("a collective has ended without rank 0")
		}
		return nil
	})
	w.close()
	if now := segments(); now != before {
		t.Errorf("from %d to %d mappings", before, now)
	}
}

// A rank whose memory cannot be had any more has left.
func TestMemoryThatCannotBeHad(t *testing.T) {
	w := worldOver(t, "shm", 3)
	defer w.close()
	errs := w.results(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil { // has a team
			return err
		}
		buf := allocated[int32](g, 10_000)
		if g.Rank() == 2 {
			if err := g.world.Acceptor.Close(); err != nil {
				return err
			}
		}
		return errors.Join(Broadcast(ctx, g, buf, 2), Barrier(ctx, g))
	})
	for r, err := range errs[:2] {
		if left, ok := errors.AsType[*PeerError](err); !ok || left.Rank != 2 || !strings.Contains(err.Error(), "has left") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if abort, ok := errors.AsType[*AbortError](errs[2]); !ok || abort.Rank == 2 {
		t.Errorf("rank 2: %v", errs[2])
	}
}

// Survivors close their world when the next round has been formed. To a rank that learns late that the round is over,
// its end is the cause.
func TestMemoryOfARankThatKnowsEarlierThatTheRoundIsOver(t *testing.T) {
	const late = 200 * time.Millisecond
	here := []string{"here", "here"}
	cfg := testConfig()
	cfg.NotifyTimeout = 2 * late
	w := newConfiguredWorld(t, cfg, transports["mem"](t, len(here)), here)
	defer w.close()
	err := w.results(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil { // has a team
			return err
		}
		buf := allocated[int32](g, 10_000)
		over := &diagnosis.Failure{Kind: diagnosis.Revoked, Rank: g.Rank(), Err: ErrRoundOver}
		learns := late
		if g.Rank() == 0 {
			learns = 5 * late
			if err := g.world.Acceptor.Close(); err != nil {
				return err
			}
		}
		time.AfterFunc(learns, func() { g.world.Endpoint.Revoke(over) })
		return Broadcast(ctx, g, buf, 0)
	})[1]
	if !errors.Is(err, ErrRoundOver) {
		t.Errorf("%v, want that the round is over", err)
	}
}

// Memory of a world in which a collective has failed is not used again: others may still write to it.
func TestNothingIsAllocatedWhereAFailureWas(t *testing.T) {
	w := worldOver(t, "shm", 2)
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		part, err := NewGroup(ctx, g, []int{0, 1})
		if err != nil {
			return err
		}
		buf := allocated[int32](g, 10_000)
		if err := errors.Join(AllReduce(ctx, part, buf, Sum), Barrier(ctx, g)); err != nil { // an abort may reach who has not returned yet
			return err
		}
		if g.Rank() == 0 {
			part.Abort(nil)
		} else if err := AllReduce(ctx, part, buf, Sum); err == nil {
			return errors.New("a sum without rank 0")
		}
		if err := Barrier(ctx, g); err != nil || g.Rank() == 0 {
			return err
		}
		again := allocated[int32](g, 10_000)
		if _, err := g.world.Heap.Alloc(1); err != nil {
			return err
		}
		at := func(b []int32) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
		if gap := at(again) - at(buf); gap < 64<<20 && -gap < 64<<20 {
			return fmt.Errorf("%#x is not far from %#x", at(again), at(buf))
		}
		return nil
	})
}

// Every rank gets the same bits, and the same as without shared buffers.
func TestSharedBuffersGiveTheSameBits(t *testing.T) {
	w := worldOver(t, "shm", 5)
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		half, brain := func(v float32) Float16 { return NewFloat16(v) }, func(v float32) BFloat16 { return NewBFloat16(v) }
		return errors.Join(sameBits(ctx, g, func(v float32) float32 { return v }), sameBits(ctx, g, half), sameBits(ctx, g, brain))
	})
}

// sameBits adds what is rounded in elements of type T in memory of Alloc, and in other memory, and compares.
func sameBits[T Element](ctx context.Context, g *Group, of func(float32) T) error {
	const block = 12_000
	n := g.Size() * block
	sums := func(in, out []T) error {
		for i := range in {
			in[i] = of(1 / float32(1+i*g.Size()+g.Rank()))
		}
		return errors.Join(ReduceScatter(ctx, g, out[:block], in, Sum), Reduce(ctx, g, in, Sum, 2), AllReduce(ctx, g, in[:block], Sum))
	}
	want, scattered := make([]T, n), make([]T, block)
	in, out := allocated[T](g, n), allocated[T](g, block)
	if err := errors.Join(sums(want, scattered), sums(in, out)); err != nil {
		return err
	}
	return errors.Join(
		same("ReduceScatter", nil, out, func(i int) T { return scattered[i] }),
		same("Reduce and AllReduce", nil, in, func(i int) T { return want[i] }))
}

package comm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

func waitAll(ctx context.Context, works []*Work) error {
	for _, w := range works {
		if err := w.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Cases 5, 10, 14 and 19 of torch's suite: many of every kind under way, waited for afterwards.
func TestManyUnderWay(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		for _, size := range []int{1, 4} {
			const n = 20
			w := world(size)
			w.run(func(ctx context.Context, g *Group) error {
				r := g.Rank()
				sum := func(i int) int { return i*size + size*(size-1)/2 }
				var works []*Work
				results := make([][][]int, n) // of op i: by kind of collective
				for i := range n {
					root := i % size
					all, part := make([]int, size), []int{0}
					reduced, sent, scattered := []int{i + r}, []int{i*size + r}, []int{0}
					gathered, transposed, uneven := make([]int, size), make([]int, size), make([]int, size)
					everybody := slices.Repeat([]int{i + r}, size)
					ones := slices.Repeat([]int{1}, size)
					shared := []int{i + r}
					allTo, reducedTo, scan, scanTo, exscan, exscanTo := []int{0}, []int{0}, []int{i + r}, []int{0}, []int{i + r}, []int{0}
					allV, gatheredV := make([]int, size), make([]int, size)
					partV, scatteredV := []int{0}, []int{0}
					results[i] = [][]int{
						shared, reduced, sent, all, part, gathered, scattered, transposed, uneven,
						allTo, reducedTo, scan, scanTo, exscan, exscanTo, allV, gatheredV, partV, scatteredV,
					}
					works = append(works,
						IAllReduce(g, shared, Sum), IReduce(g, reduced, Sum, root), IBroadcast(g, sent, root),
						IAllGather(g, all, []int{i + r}), IReduceScatter(g, part, everybody, Sum),
						IGather(g, gathered, []int{i + r}, root), IScatter(g, scattered, everybody, root),
						IAllToAll(g, transposed, everybody), IAllToAllV(g, uneven, ones, everybody, ones), IBarrier(g),
						IAllReduceTo(g, allTo, []int{i + r}, Sum), IReduceTo(g, reducedTo, []int{i + r}, Sum, root),
						IScan(g, scan, Sum), IScanTo(g, scanTo, []int{i + r}, Sum),
						IExScan(g, exscan, Sum), IExScanTo(g, exscanTo, []int{i + r}, Sum),
						IAllGatherV(g, single(allV), []int{i + r}), IGatherV(g, single(gatheredV), []int{i + r}, root),
						IReduceScatterV(g, partV, single(everybody), Sum), IScatterV(g, scatteredV, single(everybody), root))
				}
				if err := waitAll(ctx, works); err != nil {
					return err
				}
				for i, got := range results {
					var ranks []int
					for q := range size {
						ranks = append(ranks, i+q)
					}
					reduced, reducedTo, gathered := []int{i + r}, []int{0}, make([]int, size)
					if r == i%size {
						reduced, reducedTo, gathered = []int{sum(i)}, []int{sum(i)}, ranks
					}
					below := r*i + r*(r-1)/2 // the sum of the ranks below
					scan, exscan, exscanTo := []int{below + i + r}, []int{i + r}, []int{below}
					if r > 0 {
						exscan = exscanTo
					}
					want := [][]int{
						{sum(i)}, reduced, {i*size + i%size}, ranks, {sum(i)}, gathered, {i + i%size}, ranks, ranks,
						{sum(i)}, reducedTo, scan, scan, exscan, exscanTo, ranks, gathered, {sum(i)}, {i + i%size},
					}
					if !slices.EqualFunc(got, want, slices.Equal) {
						return fmt.Errorf("round %d: got %v, want %v", i, got, want)
					}
				}
				return nil
			})
			w.close()
		}
	})
}

// single returns the elements of v, each in a slice of its own.
func single(v []int) [][]int { return slices.Collect(slices.Chunk(v, 1)) }

// Ten thousand that wait take one goroutine, and the blocking call behind them comes last.
func TestTenThousandUnderWayOnOneGoroutine(t *testing.T) {
	testkit.WithoutRace(t)
	const n = 10_000
	w := newTestWorld(t, transports["mem"](t, 2))
	defer w.close()
	before := runtime.NumGoroutine()
	started := make(chan struct{})
	w.run(func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 {
			<-started // until then nothing of rank 0's can end
		}
		bufs, works := make([][1]int, n), make([]*Work, n)
		for i := range works {
			bufs[i][0] = i
			works[i] = IAllReduce(g, bufs[i][:], Sum)
		}
		if g.Rank() == 0 {
			if now := runtime.NumGoroutine(); now > before+50 {
				return fmt.Errorf("%d goroutines, and %d before", now, before)
			}
			close(started)
		}
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		for i, w := range works { // no need to wait any more
			select {
			case <-w.Done():
			default:
				return fmt.Errorf("the barrier overtook number %d", i)
			}
			if w.Err() != nil || w.Status() != (Status{}) || bufs[i][0] != 2*i {
				return fmt.Errorf("number %d: %v, %d", i, w.Err(), bufs[i][0])
			}
		}
		return nil
	})
}

func TestGroupsDoNotWaitForEachOther(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			other, err := NewGroup(ctx, g, []int{0, 1})
			if err != nil {
				return err
			}
			v, u := []int{1}, []int{1}
			if g.Rank() == 0 {
				held := IAllReduce(g, v, Sum) // rank 1 comes to it later
				if err := AllReduce(ctx, other, u, Sum); err != nil {
					return err
				}
				return held.Wait(ctx)
			}
			return errors.Join(AllReduce(ctx, other, u, Sum), IAllReduce(g, v, Sum).Wait(ctx))
		})
	})
}

func TestSeveralGoroutinesStartCollectives(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 3))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs { // all alike, so that their order does not matter
			wg.Go(func() {
				for range 50 {
					v, u := []int{1}, []int{1}
					work := IAllReduce(g, v, Sum)
					errs[i] = errors.Join(errs[i], AllReduce(ctx, g, u, Sum), work.Wait(ctx))
					if v[0] != 3 || u[0] != 3 {
						errs[i] = fmt.Errorf("got %d and %d", v[0], u[0])
					}
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

func TestWrongIFormsAreToldAtOnce(t *testing.T) {
	w := newTestWorld(t, transports["mem"](t, 2))
	defer w.close()
	w.run(func(ctx context.Context, g *Group) error {
		for _, work := range []*Work{
			IAllReduce(g, []float32{1}, BitAnd), IReduce(g, []int{1}, Sum, 2), IBroadcast(g, []int{1}, -1),
			IAllGather(g, []int{1}, []int{1}), IReduceScatter(g, []int{1}, []int{1}, Sum), IGather(g, []int{1}, []int{1}, 7),
			IScatter(g, []int{1}, []int{1}, 7), IAllToAll(g, []int{1}, []int{1}), IAllToAllV(g, []int{1}, nil, nil, nil),
		} {
			var bad *ArgumentError
			if err := work.Err(); !errors.As(err, &bad) || !errors.Is(work.Wait(ctx), err) {
				return fmt.Errorf("got %v", err)
			}
		}
		return Barrier(ctx, g) // the group goes on
	})
}

// hold starts collectives that cannot end because rank 1 does not call them.
func hold(g *Group) []*Work {
	var works []*Work
	for range 100 {
		works = append(works, IAllReduce(g, []int{1}, Sum), IBarrier(g))
	}
	return works
}

func TestWhatIsUnderWayFails(t *testing.T) {
	reason := errors.New("no use")
	for name, c := range map[string]struct {
		end  func(w *testWorld) // called by rank 0
		want func(err error) bool
	}{
		"closed":  {func(w *testWorld) { _ = w.groups[0].Close() }, func(err error) bool { return errors.Is(err, ErrClosed) }},
		"aborted": {func(w *testWorld) { w.groups[0].Abort(reason) }, func(err error) bool { return errors.Is(err, reason) }},
		"a peer died": {func(w *testWorld) { w.mortal[1].Kill() }, func(err error) bool {
			var peer *PeerError
			return errors.As(err, &peer) && peer.Rank == 1 && (peer.Op == "AllReduce" || peer.Op == "Barrier") && peer.Seq > 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
				w := world(2)
				defer w.close()
				w.run(func(ctx context.Context, g *Group) error {
					err := Barrier(ctx, g)
					if g.Rank() == 1 { // what befalls rank 0 may still reach its barrier
						return nil
					}
					if err != nil {
						return err
					}
					works := hold(g)
					c.end(w)
					for i, work := range append(works, IBarrier(g)) {
						if err := work.Wait(ctx); !c.want(err) || work.Err().Error() != err.Error() {
							return fmt.Errorf("number %d: got %w", i, err)
						}
					}
					return nil
				})
			})
		})
	}
}

package comm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env/testing/testkit"
)

// A sample is a call of some kind, in numbers that may differ between ranks.
type sample struct {
	kind   string
	typ    string
	op     Op
	root   int
	length int
}

// deviations are what one rank does otherwise than the others.
var deviations = map[string]func(s *sample){
	"kind": func(s *sample) {
		if s.kind == "Barrier" {
			s.kind = "Scan"
		} else {
			s.kind = "Barrier"
		}
	},
	"type":    func(s *sample) { s.typ = "int64" },
	"size":    func(s *sample) { s.typ = "float32" }, // another type of the same size
	"op":      func(s *sample) { s.op = Max },
	"root":    func(s *sample) { s.root = odd },
	"length":  func(s *sample) { s.length++ },
	"nothing": func(s *sample) { s.length = 0 },
}

// odd is the rank that differs, in a world of deviatingSize.
const (
	odd           = 1
	deviatingSize = 3
)

// sampleKinds are the collectives, and in what ranks can differ there. In those of oneWay rank 0 need not wait for the
// odd rank.
var (
	moved   = []string{"kind", "type", "size", "length", "nothing"}
	rooted  = append([]string{"root"}, moved...)
	reduced = append([]string{"op"}, moved...)

	sampleKinds = map[string][]string{
		"AllReduce": reduced, "Reduce": append([]string{"root"}, reduced...), "ReduceScatter": reduced, "ReduceScatterV": reduced,
		"Scan": reduced, "ExScan": reduced, "AllReduceCoalesced": reduced,
		"Broadcast": rooted, "Gather": rooted, "Scatter": rooted, "GatherV": rooted, "ScatterV": rooted,
		"AllGather": moved, "AllGatherV": moved, "AllToAll": moved, "AllToAllV": moved,
		"Barrier": {"kind"}, "MonitoredBarrier": {"kind"}, "Split": {"kind"}, "NewGroup": {"kind", "length"}, "NewMesh": {"kind", "length"},
		"BroadcastObjects": {"kind", "root", "length"}, "AllGatherObject": {"kind"}, "GatherObject": {"kind", "root"}, "ScatterObject": {"kind", "root"},
	}
	oneWay = []string{"Reduce", "Broadcast", "Gather", "Scatter", "GatherV", "ScatterV", "BroadcastObjects", "ScatterObject"}
)

// run makes call s on g, and returns what this rank has got.
func (s sample) run(ctx context.Context, g *Group) (got uint64, err error) {
	switch s.typ {
	case "int64":
		return runSample[int64](ctx, g, s)
	case "float32":
		return runSample[float32](ctx, g, s)
	}
	return runSample[int32](ctx, g, s)
}

func runSample[T Element](ctx context.Context, g *Group, s sample) (uint64, error) {
	n, size := s.length, g.Size()
	filled := func(n int) []T {
		buf := make([]T, n)
		for i := range reduce.Bytes(buf) {
			reduce.Bytes(buf)[i] = byte(i+g.Rank()) % 60
		}
		return buf
	}
	own, all, out := filled(n), filled(n*size), make([]T, n*size)
	parts, counts := make([][]T, size), make([]int, size)
	for r := range parts {
		parts[r], counts[r] = filled(n), n
	}
	objects := []any{new(string), new(string)}[:1+n%2]
	var err error
	switch s.kind {
	case "AllReduce":
		err = AllReduce(ctx, g, own, s.op)
	case "Reduce":
		err = Reduce(ctx, g, own, s.op, s.root)
	case "ReduceScatter":
		err = ReduceScatter(ctx, g, own, all, s.op)
	case "ReduceScatterV":
		err = ReduceScatterV(ctx, g, own, parts, s.op)
	case "Scan":
		err = Scan(ctx, g, own, s.op)
	case "ExScan":
		err = ExScan(ctx, g, own, s.op)
	case "AllReduceCoalesced":
		err = AllReduceCoalesced(ctx, g, [][]T{own, parts[0]}, s.op)
	case "Broadcast":
		err = Broadcast(ctx, g, own, s.root)
	case "Gather":
		err = Gather(ctx, g, out, own, s.root)
	case "GatherV":
		err = GatherV(ctx, g, parts, own, s.root)
	case "Scatter":
		err = Scatter(ctx, g, own, all, s.root)
	case "ScatterV":
		err = ScatterV(ctx, g, own, parts, s.root)
	case "AllGather":
		err = AllGather(ctx, g, out, own)
	case "AllGatherV":
		err = AllGatherV(ctx, g, parts, own)
	case "AllToAll":
		err = AllToAll(ctx, g, out, all)
	case "AllToAllV":
		err = AllToAllV(ctx, g, out, counts, all, counts)
	case "Barrier":
		err = Barrier(ctx, g)
	case "MonitoredBarrier":
		err = MonitoredBarrier(ctx, g)
	case "BroadcastObjects":
		err = BroadcastObjects(ctx, g, objects, s.root)
	case "AllGatherObject":
		_, err = AllGatherObject(ctx, g, "object")
	case "GatherObject":
		_, err = GatherObject(ctx, g, "object", s.root)
	case "ScatterObject":
		_, err = ScatterObject(ctx, g, make([]string, size), s.root)
	case "Split":
		_, err = Split(ctx, g, 0, g.Rank())
	case "NewGroup":
		_, err = NewGroup(ctx, g, []int{0, 1 + n%2})
	case "NewMesh":
		_, err = NewMesh(ctx, g, []int{size}, fmt.Sprint("axis ", n%2))
	default:
		err = errors.New("no such call")
	}
	h := fnv.New64a()
	for _, buf := range append([][]T{own, out}, parts...) {
		_, _ = h.Write(reduce.Bytes(buf))
	}
	return h.Sum64(), err
}

// Whatever collective ranks call, and in whatever one of them differs, no rank ever gets wrong numbers without an
// error: not if nobody waits for anybody, nor if one rank is far ahead. A rank gets a MismatchError, and all get an
// error when they next meet.
func TestCallsThatDifferAreFoundWhoeverWaits(t *testing.T) {
	testkit.WithoutRace(t)
	running := make(chan struct{}, 100) // worlds, most of which wait
	var all sync.WaitGroup
	for at, transport := range []string{"shm", "mem", "tcp", "mixed"} {
		for kind, ways := range sampleKinds {
			for _, length := range []int{8, 3000} {
				if transport == "mem" && length > 8 || transport == "tcp" && length == 8 && testing.Short() { // above their streams, mem and tcp are the same
					continue
				}
				usual := sample{kind: kind, typ: "int32", op: Sum, length: length}
				want := usual.inOrder(t, transport)
				for i, way := range ways {
					few := transport != "shm" || length > 8
					if i > 0 && few && (i+at)%3 != 0 && testing.Short() { // each way in memory, and on one of the others
						continue
					}
					strange := usual
					deviations[way](&strange)
					d := divergence{t, fmt.Sprintf("%s: %s of %d, rank %d differs in %s", transport, kind, length, odd, way), transport, usual, strange, 0, want}
					aheads := []int{alone, 0}
					if slices.Contains(oneWay, kind) && length == 8 {
						far := []int{130, 200, 600} // the last calls are remembered, but fewer than these
						aheads = append(aheads, testkit.UnlessShort(far, far[i%3:][:1])...)
					}
					for _, ahead := range aheads {
						d := d
						d.ahead = ahead
						if d.ahead > 0 && slices.Contains([]string{"Reduce", "Gather", "GatherV"}, kind) { // to where rank 0 does not wait
							d.usual.root, d.strange.root, d.want = 2, map[bool]int{true: odd, false: 2}[way == "root"], nil
						}
						running <- struct{}{}
						all.Go(func() {
							d.play()
							<-running
						})
					}
				}
			}
		}
	}
	all.Wait()
}

// alone is how far ahead a rank is if it makes no other call.
const alone = -1

// inOrder is what every rank gets if all of them make call s.
func (s sample) inOrder(t *testing.T, transport string) []uint64 {
	w := worldOver(t, transport, deviatingSize)
	got := make([]uint64, deviatingSize)
	w.run(func(ctx context.Context, g *Group) (err error) {
		got[g.Rank()], err = s.run(ctx, g)
		return err
	})
	w.close()
	return got
}

// A divergence is a world in which the odd rank makes another call than the others.
type divergence struct {
	t              *testing.T
	name           string
	transport      string
	usual, strange sample
	ahead          int      // how many calls rank 0 is ahead then, if it can
	want           []uint64 // what ranks get if none differs
}

func (d divergence) errorf(format string, args ...any) {
	d.t.Helper()
	d.t.Errorf("%s, %d ahead: %s", d.name, d.ahead, fmt.Sprintf(format, args...))
}

func (d divergence) play() {
	w := worldOver(d.t, d.transport, deviatingSize)
	gone := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(gone) })
	errs := w.results(func(ctx context.Context, g *Group) error {
		if err := Barrier(ctx, g); err != nil {
			return err
		}
		call := d.usual
		switch g.Rank() {
		case 0:
			defer goOn()
		case odd:
			call = d.strange
			select {
			case <-gone:
			case <-time.After(100 * time.Millisecond): // it is where it waits for this rank
			}
		}
		got, err := call.run(ctx, g)
		if err == nil && g.Rank() != odd && d.want != nil && got != d.want[g.Rank()] {
			d.errorf("rank %d got wrong numbers", g.Rank())
		}
		for i := 0; i < d.ahead && err == nil; i++ {
			err = d.numbered(ctx, g, i)
		}
		if err != nil || d.ahead == alone {
			return err
		}
		if g.Rank() == 0 {
			goOn()
		}
		return Barrier(ctx, g)
	})
	mismatches := 0
	for r, g := range w.groups {
		errs[r] = errors.Join(errs[r], g.Close())
		if _, ok := errors.AsType[*MismatchError](errs[r]); ok {
			mismatches++
		}
		if errs[r] == nil && d.ahead != alone {
			d.errorf("rank %d has heard of nothing", r)
		}
	}
	if mismatches == 0 {
		d.errorf("no rank has found out: %v", errs)
	}
}

// numbered is a Broadcast from rank 0 that makes sure of what it brings.
func (d divergence) numbered(ctx context.Context, g *Group, i int) error {
	buf := make([]int32, []int{5, 2000, 0, 700}[i%4])
	if g.Rank() == 0 {
		for k := range buf {
			buf[k] = int32(i + k)
		}
	}
	if err := Broadcast(ctx, g, buf, 0); err != nil {
		return err
	}
	if err := same("Broadcast", nil, buf, func(k int) int32 { return int32(i + k) }); err != nil {
		d.errorf("rank %d, %d calls after the one that differs: %v", g.Rank(), i+1, err)
	}
	return nil
}

// Two ranks that both believe to be the root are done at once, and never meet again: they find out when they close the
// group, each of them, and the world with its groups.
func TestTwoRootsAreFoundAtClose(t *testing.T) {
	onTransports(t, []string{"tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
		for _, length := range []int{1, 3000} {
			for i := range 10 {
				w := world(2)
				parts := make([]*Group, 2)
				w.run(func(ctx context.Context, g *Group) (err error) {
					if parts[g.Rank()], err = NewGroup(ctx, g, []int{1, 0}); err == nil {
						err = Barrier(ctx, parts[g.Rank()])
					}
					return err
				})
				errs := w.results(func(ctx context.Context, g *Group) error {
					return Broadcast(ctx, parts[g.Rank()], make([]int, length), parts[g.Rank()].Rank())
				})
				groups := parts
				if i%2 == 0 && w.shared {
					groups = w.groups
				}
				for r, g := range groups {
					if _, ok := errors.AsType[*MismatchError](errors.Join(errs[r], g.Close())); !ok {
						t.Errorf("rank %d, %d elements: has found nothing", r, length)
					}
					if err := g.Close(); err != nil {
						t.Errorf("rank %d, once more: %v", r, err)
					}
				}
				w.run(func(_ context.Context, g *Group) error {
					_ = g.Close()
					return nil
				})
			}
		}
	})
}

// A message of another type than its receive fails alone, and the group goes on: if its collectives differ later, ranks
// still find that out when they close it.
func TestTwoRootsAreFoundAtCloseAfterAMessageOfAnotherType(t *testing.T) {
	onTransports(t, []string{"tcp", "shm"}, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		errs := w.results(func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				if err := Send(ctx, g, make([]int64, 1), 1); err != nil {
					return err
				}
			} else if _, err := Recv(ctx, g, make([]int32, 1), 0); ExitCode(err) != 2 {
				return fmt.Errorf("another type: got %w", err)
			}
			if err := Barrier(ctx, g); err != nil {
				return err
			}
			if err := Broadcast(ctx, g, make([]int, 1), g.Rank()); err != nil { // both are the root, and done at once
				return errors.Join(err, g.Close())
			}
			return nil
		})
		for r, g := range w.groups {
			if _, ok := errors.AsType[*MismatchError](errors.Join(errs[r], g.Close())); !ok {
				t.Errorf("rank %d has found nothing: %v", r, errs[r])
			}
		}
	})
}

package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// element counts how often each rank's contribution is in a sum.
type element []int

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// simulate runs the plans of all ranks on vectors of contributions, without sockets or goroutines: one rank after
// the other moves as far as it can, messages between two ranks stay in order. It fails when no rank can move, when
// a message is left over, or when a send and its receive differ in length.
func simulate(t failer, plans []Plan, vec [][]element) {
	t.Helper()
	type pair struct{ from, to int }
	wire := map[pair][][]element{}
	next, sent := make([]int, len(plans)), make([]bool, len(plans))
	for moved := true; moved; {
		moved = false
		for r := range plans {
			for next[r] < len(plans[r]) {
				s := plans[r][next[r]]
				if s.To != None && !sent[r] {
					var msg []element
					for _, e := range vec[r][s.Send.Lo:s.Send.Hi] {
						msg = append(msg, slices.Clone(e))
					}
					k := pair{r, s.To}
					wire[k] = append(wire[k], msg)
				}
				sent[r] = true
				if s.From != None {
					k := pair{s.From, r}
					if len(wire[k]) == 0 {
						break
					}
					msg := wire[k][0]
					wire[k] = wire[k][1:]
					if len(msg) != s.Recv.Len() {
						t.Fatalf("rank %d step %d: got %d elements: %v", r, next[r], len(msg), s)
					}
					for i, e := range msg {
						at := &vec[r][s.Recv.Lo+i]
						if !s.Reduce {
							*at = e
							continue
						}
						for who := range e {
							(*at)[who] += e[who]
						}
					}
				}
				next[r]++
				sent[r] = false
				moved = true
			}
		}
	}
	for r := range plans {
		if next[r] < len(plans[r]) {
			t.Fatalf("rank %d stuck at step %d: %v", r, next[r], plans[r][next[r]])
		}
	}
	for k, left := range wire {
		if len(left) > 0 {
			t.Fatalf("%d messages from %d to %d were never received", len(left), k.from, k.to)
		}
	}
}

// own returns vectors in which every element of rank r holds r's contribution once.
func own(size, n int) [][]element {
	vec := make([][]element, size)
	for r := range vec {
		for range n {
			e := make(element, size)
			e[r] = 1
			vec[r] = append(vec[r], e)
		}
	}
	return vec
}

func everybody(size int) element { return slices.Repeat(element{1}, size) }

func plansOf(size int, of func(rank int) Plan) []Plan {
	plans := make([]Plan, size)
	for r := range plans {
		plans[r] = of(r)
	}
	return plans
}

func drawBlocks(t *rapid.T, size int) (blocks []Range, n int) {
	for i := range size {
		hi := n + rapid.IntRange(0, 5).Draw(t, fmt.Sprint("block", i))
		blocks = append(blocks, Range{n, hi})
		n = hi
	}
	return blocks, n
}

func wantAll(t *rapid.T, vec [][]element, want func(rank, i int) element) {
	for r := range vec {
		for i, e := range vec[r] {
			if w := want(r, i); w != nil && !slices.Equal(e, w) {
				t.Fatalf("rank %d element %d holds contributions %v, want %v", r, i, e, w)
			}
		}
	}
}

func TestAllReduceSumsEveryRankOnceEverywhere(t *testing.T) {
	algorithms := map[string]func(rank, size, n int) Plan{
		"ring": RingAllReduce, "doubling": DoublingAllReduce,
		"chosen": func(rank, size, n int) Plan { return AllReduce(rank, size, n, 4<<10) },
	}
	for name, algorithm := range algorithms {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			size, n := rapid.IntRange(1, 17).Draw(t, "size"), rapid.IntRange(0, 40).Draw(t, "n")
			vec := own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return algorithm(r, size, n) }), vec)
			wantAll(t, vec, func(int, int) element { return everybody(size) })
		}))
	}
}

func TestReduceScatterLeavesEveryBlockWithItsOwner(t *testing.T) {
	for name, algorithm := range map[string]func(int, []Range) Plan{
		"ring": RingReduceScatter, "pairwise": PairwiseReduceScatter,
	} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			size := rapid.IntRange(1, 17).Draw(t, "size")
			blocks, n := drawBlocks(t, size)
			vec := own(size, n)
			simulate(t, plansOf(size, func(r int) Plan { return algorithm(r, blocks) }), vec)
			wantAll(t, vec, func(r, i int) element {
				if i < blocks[r].Lo || i >= blocks[r].Hi {
					return nil
				}
				return everybody(size)
			})
		}))
	}
}

func TestPairwiseWritesOnlyItsOwnBlock(t *testing.T) {
	blocks := []Range{{0, 2}, {2, 2}, {2, 7}}
	for r := range blocks {
		for _, s := range PairwiseReduceScatter(r, blocks) {
			if s.Recv != blocks[r] {
				t.Errorf("rank %d receives into %v, owns %v", r, s.Recv, blocks[r])
			}
		}
	}
}

func TestAllGatherCollectsEveryBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 17).Draw(t, "size")
		blocks, n := drawBlocks(t, size)
		vec := own(size, n)
		simulate(t, plansOf(size, func(r int) Plan { return RingAllGather(r, blocks) }), vec)
		wantAll(t, vec, func(_, i int) element {
			want := make(element, size)
			want[slices.IndexFunc(blocks, func(b Range) bool { return i >= b.Lo && i < b.Hi })] = 1
			return want
		})
	})
}

func TestRootedPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := rapid.IntRange(1, 17).Draw(t, "size"), rapid.IntRange(0, 5).Draw(t, "n")
		root := rapid.IntRange(0, size-1).Draw(t, "root")

		vec := own(size, n)
		simulate(t, plansOf(size, func(r int) Plan { return BinomialBroadcast(r, size, n, root) }), vec)
		want := make(element, size)
		want[root] = 1
		wantAll(t, vec, func(int, int) element { return want })

		vec = own(size, n)
		simulate(t, plansOf(size, func(r int) Plan { return BinomialReduce(r, size, n, root) }), vec)
		wantAll(t, vec, func(r, _ int) element {
			if r != root {
				return nil
			}
			return everybody(size)
		})
	})
}

// Nobody leaves the barrier before everybody has entered it: in the graph of messages every rank's end must be
// reachable from every rank's start.
func TestBarrierHearsOfEverybody(t *testing.T) {
	for size := 1; size <= 33; size++ {
		plans := plansOf(size, func(r int) Plan { return DisseminationBarrier(r, size) })
		heard := make([][]bool, size)
		for r := range heard {
			heard[r] = make([]bool, size)
			heard[r][r] = true
		}
		for s := range plans[0] {
			before := make([][]bool, size)
			for r := range heard {
				before[r] = slices.Clone(heard[r])
			}
			for r := range plans {
				for who, ok := range before[plans[r][s].From] {
					heard[r][who] = heard[r][who] || ok
				}
			}
		}
		for r := range heard {
			if slices.Contains(heard[r], false) {
				t.Errorf("size %d: rank %d leaves without having heard of everybody: %v", size, r, heard[r])
			}
		}
		simulate(t, plans, own(size, 0))
	}
}

func TestEvenBlocksCoverTheVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 1000).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "size")
		at := 0
		for i := range size {
			b := Even(n, size, i)
			if b.Lo != at || b.Len() < n/size || b.Len() > n/size+1 {
				t.Fatalf("block %d of %d in %d elements is %v, expected to start at %d", i, size, n, b, at)
			}
			at = b.Hi
		}
		if at != n {
			t.Fatalf("blocks end at %d, vector at %d", at, n)
		}
	})
}

func ExampleRingAllReduce() {
	for _, step := range RingAllReduce(1, 3, 6) {
		fmt.Println(step)
	}
	// Output:
	// send [0:2]→2 reduce [4:6]←0
	// send [4:6]→2 reduce [2:4]←0
	// send [2:4]→2 recv [0:2]←0
	// send [0:2]→2 recv [4:6]←0
}

package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tagged returns for every rank a vector of n(rank) elements {rank, index}.
func tagged(size int, n func(rank int) int) [][]element {
	vec := make([][]element, size)
	for r := range vec {
		for i := range n(r) {
			vec[r] = append(vec[r], element{r, i})
		}
	}
	return vec
}

func TestGatherAndScatterOfUnequalBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		blocks, n := drawBlocks(t, size)
		parts := tagged(size, func(r int) int { return blocks[r].Len() })
		whole := make([][]element, size)
		whole[root] = make([]element, n)
		simulate(t, plansOf(size, func(r int) Plan {
			if r != root {
				return LinearGather(nil, r, root, blocks[r].Len(), nil) // lengths of others are known to root alone
			}
			return LinearGather(nil, r, root, blocks[r].Len(), blocks)
		}), parts, whole)
		if want := slices.Concat(parts...); !slices.EqualFunc(whole[root], want, slices.Equal) {
			t.Fatalf("gathered %v, want %v", whole[root], want)
		}
		back := make([][]element, size)
		for r := range back {
			back[r] = make([]element, blocks[r].Len())
		}
		simulate(t, plansOf(size, func(r int) Plan {
			if r != root {
				return LinearScatter(nil, r, root, blocks[r].Len(), nil)
			}
			return LinearScatter(nil, r, root, blocks[r].Len(), blocks)
		}), whole, back)
		for r := range parts {
			if !slices.EqualFunc(back[r], parts[r], slices.Equal) {
				t.Fatalf("rank %d got %v back, want %v", r, back[r], parts[r])
			}
		}
	})
}

// received returns vectors for what the plans receive, with their scratch memory.
func received(plans []Plan) [][]element {
	vec := make([][]element, len(plans))
	for r, p := range plans {
		vec[r] = make([]element, p.Extent())
	}
	return vec
}

func TestGatherAndScatterInATree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 3).Draw(t, "n")
		root := rapid.IntRange(0, size-1).Draw(t, "root")
		blocks := EqualBlocks(size, n)
		plans := plansOf(size, func(r int) Plan { return BinomialGather(r, size, n, root) })
		whole := received(plans)
		simulate(t, plans, tagged(size, func(int) int { return n }), whole)
		for r, b := range blocks {
			for i, e := range whole[root][b.Lo:b.Hi] {
				if !slices.Equal(e, element{r, i}) {
					t.Fatalf("root %d got %v at %d of the block of rank %d", root, e, i, r)
				}
			}
		}
		plans = plansOf(size, func(r int) Plan { return BinomialScatter(r, size, n, root) })
		parts := received(plans)
		simulate(t, plans, tagged(size, func(int) int { return size * n }), parts)
		for r, b := range blocks {
			for i, e := range parts[r][:n] {
				if !slices.Equal(e, element{root, b.Lo + i}) {
					t.Fatalf("rank %d got %v at %d of its block, root %d", r, e, i, root)
				}
			}
		}
	})
}

func TestBruckAllToAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, n := drawSize(t), rapid.IntRange(0, 3).Draw(t, "n")
		plans := plansOf(size, func(r int) Plan { return BruckAllToAll(r, size, n) })
		vec := received(plans)
		simulate(t, plans, tagged(size, func(int) int { return size * n }), vec)
		for r := range size {
			for from := range size {
				for k := range n {
					if want := (element{from, r*n + k}); !slices.Equal(vec[r][from*n+k], want) {
						t.Fatalf("rank %d has %v in block %d, want %v", r, vec[r][from*n+k], from, want)
					}
				}
			}
		}
	})
}

func TestAllToAllTransposesBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := drawSize(t)
		send, recv := make([][]Range, size), make([][]Range, size)
		var sizes []int
		for r := range size {
			var n int
			send[r], n = drawBlocks(t, size)
			sizes = append(sizes, n)
		}
		in, out := tagged(size, func(r int) int { return sizes[r] }), make([][]element, size)
		want := make([][]element, size)
		for r := range size {
			for from := range size {
				b := send[from][r]
				lo := len(want[r])
				want[r] = append(want[r], in[from][b.Lo:b.Hi]...)
				recv[r] = append(recv[r], Range{lo, len(want[r])})
			}
			out[r] = make([]element, len(want[r]))
		}
		simulate(t, plansOf(size, func(r int) Plan { return PairwiseAllToAll(nil, r, send[r], recv[r]) }), in, out)
		for r := range want {
			if !slices.EqualFunc(out[r], want[r], slices.Equal) {
				t.Fatalf("rank %d got %v, want %v", r, out[r], want[r])
			}
		}
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
		simulate(t, plans, own(size, 0), own(size, 0))
	}
}

// A rank has sent all its messages before it waits for any, and waits for one of each other rank.
func TestPairwiseBarrier(t *testing.T) {
	for size := 1; size <= 9; size++ {
		for rank := range size {
			p := PairwiseBarrier(rank, size)
			sends, receives := p[:size-1], p[size-1:]
			var to, from []int
			for i := range sends {
				if sends[i].From != None || receives[i].To != None {
					t.Errorf("rank %d of %d: %v", rank, size, p)
				}
				to, from = append(to, sends[i].To), append(from, receives[i].From)
			}
			others := slices.Delete(upTo(size), rank, rank+1)
			if len(receives) != size-1 || !slices.Equal(slices.Sorted(slices.Values(to)), others) || !slices.Equal(slices.Sorted(slices.Values(from)), others) {
				t.Errorf("rank %d of %d sends to %v and receives from %v", rank, size, to, from)
			}
		}
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

package pattern

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var ops = []string{"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier", "sendrecv"}

// TestResults carries out every way in memory, for several numbers of ranks, and checks what the ranks have in the end.
func TestResults(t *testing.T) {
	for size := 2; size <= 9; size++ {
		for _, op := range ops {
			for _, elements := range []int{0, 1, 3, 3 * chunk / Element / size} {
				n := elements * size * Element
				if op == "barrier" {
					n = 0
				}
				first, err := Ways(op, 0, size, n)
				if err != nil {
					t.Fatal(err)
				}
				for i, w := range first {
					t.Run(fmt.Sprint(op, size, "ranks", n, w.Name), func(t *testing.T) { checkResult(t, op, size, n, i) })
				}
			}
		}
	}
}

// value is element i of rank r's buffer a at the beginning. All sums are exact.
func value(r, i int) float32 { return float32(r*7 + i%5 + 1) }

func checkResult(t *testing.T, op string, size, n, way int) {
	ways, memory := make([]Way, size), make([][]float32, size)
	for r := range size {
		list, err := Ways(op, r, size, n)
		if err != nil || way >= len(list) {
			t.Fatalf("rank %d has %d ways (%v)", r, len(list), err)
		}
		ways[r] = list[way]
		memory[r] = make([]float32, ways[r].Memory/Element+2*size)
		for i := range n / Element {
			memory[r][i] = value(r, i)
		}
	}
	perform(t, op, ways, memory)
	length, part := n/Element, n/Element/size
	check := func(r, at, count int, want func(i int) float32) {
		t.Helper()
		for i := range count {
			if got := memory[r][at+i]; got != want(i) {
				t.Fatalf("rank %d: element %d at %d is %v, want %v", r, i, at, got, want(i))
			}
		}
	}
	sum := func(i int) (all float32) {
		for r := range size {
			all += value(r, i)
		}
		return all
	}
	for r := range size {
		switch op {
		case "all_reduce":
			check(r, 0, length, sum)
		case "reduce":
			if r == 0 {
				check(r, 0, length, sum)
			}
		case "broadcast":
			check(r, 0, length, func(i int) float32 { return value(0, i) })
		case "all_gather":
			check(r, length, length, func(i int) float32 { return value(i/part, i%part) })
		case "reduce_scatter":
			check(r, length, part, func(i int) float32 { return sum(r*part + i) })
		case "all_to_all":
			check(r, length, length, func(i int) float32 { return value(i/part, r*part+i%part) })
		case "sendrecv":
			if r < 2 {
				check(r, length, length, func(i int) float32 { return value(1-r, i) })
			}
		}
	}
}

// perform carries out the ways of all ranks. A message needs both of its ends at the same time, so a way that ends here does not depend on
// buffers of the kernel. The messages of barriers are shorter than an element: nothing is moved.
func perform(t *testing.T, op string, ways []Way, memory [][]float32) {
	type end struct{ rank, move int }
	next, left := make([]int, len(ways)), make([]Step, len(ways))
	advance := func(r int) {
		for len(left[r]) == 0 && next[r] < len(ways[r].Steps) {
			s := ways[r].Steps[next[r]]
			next[r]++
			checkStep(t, op, r, s)
			for _, m := range s {
				at, from, length := m.At/Element, m.From/Element, m.Length/Element
				switch m.Kind {
				case Copy:
					copy(memory[r][at:at+length], memory[r][from:])
				case Sum:
					for i := range length {
						memory[r][at+i] += memory[r][from+i]
					}
				default:
					left[r] = append(left[r], m)
				}
			}
		}
	}
	find := func(r, peer int, sends bool) *end {
		i := slices.IndexFunc(left[r], func(m Move) bool { return m.Peer == peer && (m.Kind == Send) == sends })
		if i < 0 {
			return nil
		}
		return &end{r, i}
	}
	for moved := true; moved; {
		moved = false
		for r := range ways {
			advance(r)
		}
		for r := range ways {
			for peer := range ways {
				out, in := find(r, peer, true), find(peer, r, false)
				if out == nil || in == nil {
					continue
				}
				s, d := left[r][out.move], left[peer][in.move]
				if s.Length != d.Length {
					t.Fatalf("rank %d sends %d bytes to rank %d, which receives %d", r, s.Length, peer, d.Length)
				}
				for i := range s.Length / Element {
					if at := d.At/Element + i; d.Kind == Add {
						memory[peer][at] += memory[r][s.At/Element+i]
					} else {
						memory[peer][at] = memory[r][s.At/Element+i]
					}
				}
				left[r] = slices.Delete(left[r], out.move, out.move+1)
				left[peer] = slices.Delete(left[peer], in.move, in.move+1)
				moved = true
			}
		}
	}
	for r := range ways {
		if len(left[r]) > 0 || next[r] < len(ways[r].Steps) {
			t.Fatalf("rank %d waits for ever in step %d: %v", r, next[r], left[r])
		}
	}
}

// checkStep fails if a step's moves disturb each other, or if the engines cannot tell its messages apart.
func checkStep(t *testing.T, op string, rank int, s Step) {
	t.Helper()
	used := make(map[string]bool)
	for i, m := range s {
		if local := m.Kind == Copy || m.Kind == Sum; local {
			if len(s) != 1 {
				t.Fatalf("rank %d: %c beside other moves: %v", rank, m.Kind, s)
			}
			continue
		}
		direction := fmt.Sprint(m.Kind == Send, m.Peer)
		if used[direction] || m.Peer == rank {
			t.Fatalf("rank %d: two moves in one direction, or one to itself: %v", rank, s)
		}
		used[direction] = true
		for _, o := range s[:i] {
			overlap := m.At < o.At+o.Length && o.At < m.At+m.Length
			if harmless := m.Kind == o.Kind && m.Kind != Recv; overlap && !harmless {
				t.Fatalf("%s, rank %d: %v overlaps %v", op, rank, m, o)
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, c := range []struct {
		op            string
		rank, size, n int
		want          string
	}{
		{"scan", 0, 2, 8, "unknown operation scan"},
		{"all_reduce", 2, 2, 8, "all_reduce of 8 bytes on rank 2 of 2"},
		{"all_reduce", 0, 1, 8, "all_reduce of 8 bytes on rank 0 of 1"},
		{"all_reduce", 0, 3, 16, "all_reduce of 16 bytes on rank 0 of 3"},
		{"all_reduce", 0, 2, -8, "all_reduce of -8 bytes on rank 0 of 2"},
	} {
		if list, err := Ways(c.op, c.rank, c.size, c.n); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, %v", c, list, err)
		}
	}
}

// TestBytes: the ways for long vectors send the fewest bytes possible.
func TestBytes(t *testing.T) {
	const size, n = 8, 8 << 20
	for op, want := range map[string]struct {
		way  string
		sent int
	}{
		"all_reduce":     {"ring halving", 2 * n * 7 / 8},
		"reduce_scatter": {"ring halving direct", n * 7 / 8},
		"all_gather":     {"ring doubling direct", n * 7 / 8},
		"all_to_all":     {"direct pairwise", n * 7 / 8},
		"broadcast":      {"chain", n},
		"reduce":         {"chain", n},
	} {
		for rank := range size {
			list, err := Ways(op, rank, size, n)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, w := range list {
				if !slices.Contains(strings.Fields(want.way), w.Name) {
					continue
				}
				found++
				sent := 0
				for _, s := range w.Steps {
					for _, m := range s {
						if m.Kind == Send {
							sent += m.Length
						}
					}
				}
				if last := want.way == "chain" && sent == 0; sent != want.sent && !last {
					t.Errorf("%s, %s: rank %d sends %d bytes, want %d", op, w.Name, rank, sent, want.sent)
				}
			}
			if found != len(strings.Fields(want.way)) {
				t.Errorf("%s: %d of %s", op, found, want.way)
			}
		}
	}
}

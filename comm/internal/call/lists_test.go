package call

import (
	"slices"
	"testing"
)

func TestListsInCalls(t *testing.T) {
	for _, c := range []struct {
		list []int
		want string
	}{
		{[]int{0}, "ranks [0]"},
		{[]int{3, 0, 2}, "ranks [3 0 2]"},
		{[]int{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}, "ranks [7 6 5 4 3 2 1 0 15 14 13 12 11 10 9 8]"},
		{[]int{1 << 62}, "ranks [4611686018427387904]"},
		{slices.Repeat([]int{1}, 65), "ranks: 65, with checksum e433a040"},
	} {
		var call Call
		SetList(&call, c.list)
		if got := describeList(call, "ranks"); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for _, call := range []Call{{Reduce: 255, Root: 3}, {Reduce: 4, Root: 1 << 30}, {Reduce: 4, Root: -1}} {
		_ = describeList(call, "ranks") // of a rank that is out of its mind
	}
}

func TestLengthsInCalls(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    string
	}{
		{[]int{0}, "[0]"},
		{[]int{3, 0, 0}, "[3 0 0]"},
		{[]int{1 << 62}, "[4611686018427387904]"},
		{[]int{1 << 20, 2, 3}, "[1048576 2 3]"},
		{[]int{1 << 21, 2, 3}, "3 blocks with checksum 7945a61896a9644c"},
	} {
		var call Call
		SetLengths(&call, len(c.lengths), func(i int) int { return c.lengths[i] })
		if got := describeLengths(call); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	for _, root := range []int32{-1, 1 << 30, 1<<30 | 64, 1<<30 | 255, -1 << 8} {
		_ = describeLengths(Call{Root: root}) // of a rank that is out of its mind
	}
}

// Lengths that are too long for a list differ in their checksum if one of them differs, or their order.
func TestChecksumsOfLengths(t *testing.T) {
	sum := func(lengths ...int) Call {
		var call Call
		SetLengths(&call, len(lengths), func(i int) int { return lengths[i] })
		return call
	}
	const n = 1 << 40
	calls := map[Call]bool{}
	lists := [][]int{{n, 1, 2}, {n, 2, 1}, {n, 1, 3}, {n + 1, 1, 2}, {n, 1, 2, 0}, {1, n, 2}, {0, n, 1, 2}}
	for _, l := range lists {
		calls[sum(l...)] = true
	}
	if len(calls) != len(lists) {
		t.Errorf("%d lists of lengths have %d checksums", len(lists), len(calls))
	}
}

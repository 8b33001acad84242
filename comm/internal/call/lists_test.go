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

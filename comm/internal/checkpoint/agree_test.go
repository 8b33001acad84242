package checkpoint

import (
	"errors"
	"slices"
	"testing"
)

// TestAgree: ranks without parts.
func TestAgree(t *testing.T) {
	has := func(round, number uint64) report {
		return report{Begun: true, Copies: []copyReport{{ID: ID{round, number}, Agreed: round}}}
	}
	begunWith := func(round, number, agreed uint64) report {
		return report{Begun: true, Copies: []copyReport{{ID: ID{round, number}, Agreed: agreed}}}
	}
	newcomer, first, torn := report{}, report{Copies: []copyReport{{}}}, report{Begun: true}
	sources := func(r report, n int) report {
		r.Sources = n
		return r
	}
	for name, c := range map[string]struct {
		all       []report
		id        ID
		holders   []int
		receivers []int
		mostFrom  int
	}{
		"alone":                    {[]report{first}, ID{9, 1}, []int{0}, nil, 0},
		"the first world":          {[]report{first, newcomer, newcomer}, ID{9, 1}, []int{0}, []int{1, 2}, 0},
		"the same":                 {[]report{has(1, 7), has(1, 7)}, ID{1, 7}, []int{0, 1}, nil, 0},
		"one was quicker":          {[]report{first, has(1, 7), has(1, 8)}, ID{1, 8}, []int{2}, []int{0, 1}, 0},
		"one was cut off":          {[]report{has(1, 9), has(2, 8), has(2, 8), newcomer}, ID{2, 8}, []int{1, 2}, []int{0, 3}, 0},
		"without gorun":            {[]report{has(0, 3), has(0, 3), newcomer, has(0, 2)}, ID{0, 3}, []int{0, 1}, []int{2, 3}, 0},
		"the round counts first":   {[]report{has(3, 5), has(2, 50), has(1, 500)}, ID{3, 5}, []int{0}, []int{1, 2}, 0},
		"a world has begun with":   {[]report{has(3, 50), begunWith(2, 8, 4), newcomer}, ID{2, 8}, []int{1}, []int{0, 2}, 0},
		"and gone on":              {[]report{begunWith(2, 8, 4), has(4, 9)}, ID{4, 9}, []int{1}, []int{0}, 0},
		"receivers' sources":       {[]report{sources(first, 1), sources(newcomer, 4), sources(newcomer, 3)}, ID{9, 1}, []int{0}, []int{1, 2}, 3},
		"unsigned":                 {[]report{has(1, 1<<63), has(1, 1<<63+1)}, ID{1, 1<<63 + 1}, []int{1}, []int{0}, 0},
		"a commit was interrupted": {[]report{torn, has(1, 7)}, ID{1, 7}, []int{1}, []int{0}, 0},
	} {
		a, err := agree(c.all, 9)
		same := a.id == c.id && slices.Equal(a.holders, c.holders) && slices.Equal(a.receivers, c.receivers) && a.mostFrom == c.mostFrom
		if err != nil || !same || len(a.eachCommit) > 0 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	if a, err := agree([]report{first, torn}, 9); !errors.Is(err, errNothingWhole) {
		t.Errorf("of nothing: %+v, %v", a, err)
	}
}

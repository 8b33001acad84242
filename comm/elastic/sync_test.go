package elastic

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm"
)

// inWorld runs program as each rank of a world, and returns their errors.
func inWorld(t testing.TB, transport string, size int, program func(ctx context.Context, world *comm.Group) error) []error {
	return inWorldAs(t, transport, size, func(p *testRank) error {
		world, err := p.init(t.Context())
		if err == nil {
			err = errors.Join(program(t.Context(), world), world.Close())
		}
		return err
	})
}

// inWorldAs runs program as each rank of the first world of a job, which it has not joined yet, and returns their errors.
func inWorldAs(t testing.TB, transport string, size int, program func(p *testRank) error) []error {
	j := &testJob{t: t, transport: transport}
	round, errs := j.newRound(1, size), make([]error, size)
	for r := range size {
		j.ranks.Go(func() { errs[r] = program(&testRank{job: j, rank: r, round: round}) })
	}
	j.ranks.Wait()
	return errs
}

// TestStatesThatDoNotFit: if a rank's State is another one, its error says so, with both sides, and the others wait for its end.
func TestStatesThatDoNotFit(t *testing.T) {
	type model struct{ A, B int }
	type newModel struct{ A, B, C int }
	items := func() []Item {
		return []Item{Slice("a", make([]float32, 10)), Value("step", new(int)), Value("model", new(model))}
	}
	with := func(n int, i Item) []Item {
		list := items()
		list[n] = i
		return list
	}
	for name, c := range map[string]struct {
		items []Item // of rank 1
		run   int
		want  string
	}{
		"length":  {with(0, Slice("a", make([]float32, 12))), 1, `"a" is float32 × 10 on rank 0, and float32 × 12 on rank 1`},
		"element": {with(0, Slice("a", make([]float64, 10))), 1, `"a" is float32 × 10 on rank 0, and float64 × 10 on rank 1`},
		"type":    {with(1, Value("step", new(string))), 1, `"step" is int on rank 0, and string on rank 1`},
		"field": {with(2, Value("model", new(newModel))), 1,
			`"model" is elastic.model struct { A int; B int; } on rank 0, and elastic.newModel struct { A int; B int; C int; } on rank 1`},
		"form":     {with(1, Slice("step", make([]int, 1))), 1, `"step" is int on rank 0, and int64 × 1 on rank 1`},
		"missing":  {items()[:2], 1, `rank 0 has "model" (elastic.model struct { A int; B int; }) in its State, and rank 1 has not`},
		"too many": {append(items(), Value("z", new(int))), 1, `rank 1 has "z" (int) in its State, and rank 0 has not`},
		"other":    {with(1, Value("stepp", new(int))), 1, `rank 0 has "step" (int) in its State, and rank 1 has not`},
		"none":     {nil, 1, `rank 0 has "a" (float32 × 10) in its State, and rank 1 has not`},
		"run":      {items(), 2, `rank 0 is in call 1 of elastic.Run, and rank 1 in call 2`},
		"order":    {[]Item{items()[2], items()[0], items()[1]}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			errs := inWorld(t, "shm", 3, func(ctx context.Context, world *comm.Group) error {
				list, run := items(), 1
				if world.Rank() == 1 {
					list, run = c.items, c.run
				}
				s, err := NewState(list...)
				if err != nil {
					return err
				}
				return s.sync(ctx, world, 1, run)
			})
			if c.want == "" {
				wantNoErrors(t, errs)
				return
			}
			var argument *comm.ArgumentError
			if !errors.As(errs[1], &argument) || argument.Error() != "comm: elastic.Run: "+c.want {
				t.Errorf("rank 1: %v", errs[1])
			}
			for _, r := range []int{0, 2} {
				var abort *comm.AbortError
				if !errors.As(errs[r], &abort) || abort.Rank != 1 || !strings.Contains(abort.Error(), c.want) || !worldChanged(errs[r], nil) {
					t.Errorf("rank %d: %v", r, errs[r])
				}
			}
		})
	}
}

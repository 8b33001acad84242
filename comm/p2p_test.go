package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gorun/gorun/comm/internal/wire"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestSendAndRecvOfEveryPairAndLength(t *testing.T) {
	testkit.WithoutRace(t)
	const eager, longest = wire.EagerLimit / 8, 100_000
	all := make([]float64, 9*longest) // each rank sends n of them, its own
	for i := range all {
		all[i] = float64(i)
	}
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		for _, n := range []int{0, 1, 1000, eager - 1, eager, eager + 1, longest} {
			if n > eager+1 && g.Size() > 4 && testing.Short() { // more ranks show nothing new
				continue
			}
			out := all[g.Rank()*n:][:n]
			var works []*Work
			for to := range g.Size() { // to oneself as well
				works = append(works, ISend(g, out, to, n))
			}
			for from := range g.Size() {
				in := make([]float64, n+1)
				st, err := Recv(ctx, g, in, from, n)
				if err != nil {
					return err
				}
				if st != (Status{Source: from, Tag: n, Count: n}) {
					return fmt.Errorf("from %d: got status %+v", from, st)
				}
				if err := sameAs(fmt.Sprintf("Recv from %d", from), nil, in[:n], all[from*n:][:n]); err != nil {
					return err
				}
			}
			for _, w := range works {
				if err := w.Wait(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func TestBatchExchangesAroundARing(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		next, previous := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		out, in := []int{2 * g.Rank(), 2*g.Rank() + 1}, make([]int, 2)
		works := Batch(SendOp(g, out, next), RecvOp(g, in, previous))
		for _, w := range works {
			if err := w.Wait(ctx); err != nil {
				return err
			}
			select {
			case <-w.Done():
			default:
				return errors.New("Wait returned before Done")
			}
		}
		if want := []int{2 * previous, 2*previous + 1}; !slices.Equal(in, want) {
			return fmt.Errorf("got %v, want %v", in, want)
		}
		if st := works[1].Status(); st != (Status{Source: previous, Count: 2}) || works[0].Status() != (Status{}) {
			return fmt.Errorf("got status %+v and %+v", works[0].Status(), st)
		}
		return nil
	})
}

// Case 34 of torch's suite: a batch of nothing, and one with a part that nobody has made.
func TestBatchesOfNothing(t *testing.T) {
	inWorldOf(t, 1, func(ctx context.Context, g *Group) error {
		works := Batch(P2POp{}, SendOp(g, []int{1}, 0))
		var argument *ArgumentError
		if err := works[0].Wait(ctx); len(Batch()) != 0 || !errors.As(err, &argument) || works[0].Status() != (Status{}) {
			return fmt.Errorf("got %w", err)
		}
		return works[1].Wait(ctx)
	})
}

func TestMessagesThatDoNotFit(t *testing.T) {
	onEveryTransport(t, func(t *testing.T, world func(int) *testWorld) {
		w := world(2)
		defer w.close()
		w.run(func(ctx context.Context, g *Group) error {
			if g.Rank() == 0 {
				return errors.Join(Send(ctx, g, make([]int32, 5), 1), Send(ctx, g, []int32{1}, 1), Send(ctx, g, []int32{2}, 1))
			}
			_, err := Recv(ctx, g, make([]int32, 3), 0)
			var short *TruncateError
			if !errors.As(err, &short) || *short != (TruncateError{Source: 0, Got: 5, Room: 3}) {
				return fmt.Errorf("got %v", err)
			}
			_, err = Recv(ctx, g, make([]float32, 3), 0)
			var mismatch *MismatchError
			if !errors.As(err, &mismatch) || err.Error() != "comm: Recv #2: calls do not match: rank 0 Send(int32); rank 1 Recv(float32)" {
				return fmt.Errorf("got %v", err)
			}
			v := []int32{0}
			if _, err := Recv(ctx, g, v, 0); err != nil || v[0] != 2 {
				return fmt.Errorf("the group did not go on: got %d, %v", v[0], err)
			}
			return nil
		})
	})
}

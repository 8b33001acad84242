package comm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gorun/gorun/comm/internal/objects"
	"github.com/gorun/gorun/env/testing/testkit"
)

func TestObjectsFromRankToRank(t *testing.T) {
	inWorldOf(t, 4, func(ctx context.Context, g *Group) error {
		if g.Rank() > 0 {
			return errors.Join(
				SendObjects(ctx, g, []any{shardOf(g.Rank()), g.Rank()}, 0),
				Send(ctx, g, []int{g.Rank()}, 0),
				SendObjects(ctx, g, []any{make([]int, 100_000)}, 0), // too large to travel ahead
				SendObjects(ctx, g, nil, g.Rank()))
		}
		for range 3 {
			var s shard
			var n, unset int
			st, err := RecvObjects(ctx, g, []any{&s, &n, &unset}, AnySource)
			if err := wantEqual("RecvObjects", []any{s, n, st.Count}, []any{shardOf(st.Source), st.Source, 2}, err); err != nil {
				return err
			}
			var long []int
			_, errRecv := Recv(ctx, g, []int{0}, st.Source)
			_, err = RecvObjects(ctx, g, []any{&long}, st.Source)
			if err := errors.Join(errRecv, err); err != nil || len(long) != 100_000 {
				return fmt.Errorf("got %d numbers, %w", len(long), err)
			}
		}
		return nil
	})
}

// Each of several receivers gets a message of its own, whatever its length.
func TestObjectsForSeveralReceivers(t *testing.T) {
	const each = 6
	inWorldOf(t, 4, func(ctx context.Context, g *Group) error {
		errs := make(chan error, 3)
		if g.Rank() > 0 {
			for i := range each {
				if err := SendObjects(ctx, g, []any{make([]int, 20_000*(i%3)), g.Rank()}, 0); err != nil {
					return err
				}
			}
			return nil
		}
		for range cap(errs) {
			go func() {
				for range each {
					var list []int
					rank := 0
					if st, err := RecvObjects(ctx, g, []any{&list, &rank}, AnySource); err != nil || rank != st.Source {
						errs <- fmt.Errorf("got %d from %+v, %w", rank, st, err)
						return
					}
				}
				errs <- nil
			}()
		}
		return errors.Join(<-errs, <-errs, <-errs)
	})
}

func TestObjectsThatAreNotWhatWasAwaited(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		if g.Rank() == 0 {
			return errors.Join(
				Send(ctx, g, []float32{1, 2}, 1), SendObjects(ctx, g, []any{1}, 1), SendObjects(ctx, g, []any{1, 2}, 1),
				SendObjects(ctx, g, []any{1, "two"}, 1), SendObjects(ctx, g, []any{42}, 1))
		}
		var m *MismatchError
		n, other := 0, 0
		if _, err := RecvObjects(ctx, g, []any{&n}, 0); !errors.As(err, &m) || !strings.Contains(err.Error(), "rank 0 Send(float32); rank 1 RecvObjects") {
			return fmt.Errorf("got %w", err)
		}
		if _, err := Recv(ctx, g, []float32{0}, 0); !errors.As(err, &m) || !strings.Contains(err.Error(), "rank 0 SendObjects; rank 1 Recv(float32)") {
			return fmt.Errorf("got %w", err)
		}
		var long *TruncateError
		if _, err := RecvObjects(ctx, g, []any{&n}, 0); !errors.As(err, &long) || long.Got != 2 || long.Room != 1 {
			return fmt.Errorf("got %w", err)
		}
		var o *ObjectError
		if st, err := RecvObjects(ctx, g, []any{&n, &other}, 0); !errors.As(err, &o) || !strings.Contains(err.Error(), "object of rank 0: number 2 of 2 cannot be decoded") || n != 1 || st.Count != 1 {
			return fmt.Errorf("got %d, %+v, %w", n, st, err)
		}
		if _, err := RecvObjects(ctx, g, []any{&n}, 0); err != nil || n != 42 {
			return fmt.Errorf("got %d, %w", n, err)
		}
		return nil
	})
}

// A peer that ignores the limit does not make this rank take memory.
func TestObjectsAboveTheLimitAreNotReceived(t *testing.T) {
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		sub, err := NewGroup(ctx, g, []int{0, 1}, WithObjectLimit(10<<20-9<<20*g.Rank()))
		if err != nil {
			return err
		}
		if g.Rank() == 0 {
			return SendObjects(ctx, sub, []any{make([]byte, 5<<20)}, 1)
		}
		var b []byte
		var o *ObjectError
		_, err = RecvObjects(ctx, sub, []any{&b}, 0)
		if !errors.As(err, &o) || o.Rank != 0 || !strings.Contains(err.Error(), "the limit is 1048576") || b != nil {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

// Whatever a peer sends in the place of an object, what is made of it is in proportion.
func FuzzDecodeObject(f *testing.F) {
	testkit.WithoutRace(f)
	for _, v := range []any{nil, 1, "text", []byte("bytes"), []any{1, "two", nil}, map[string]any{"a": []int{1}}, shardOf(1)} {
		b, err := objects.CBOR.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x9b, 0, 0, 0, 0, 0x40, 0, 0, 0})                                   // an array of a billion
	f.Add(append([]byte{0x9a, 0, 0x10, 0, 0}, bytes.Repeat([]byte{0xa0}, 1<<20)...)) // a million empty maps
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, into := range []func() any{
			func() any { return new(any) }, func() any { return new(shard) }, func() any { return new([]string) }, func() any { return new(map[string][]int) },
		} {
			testkit.AllocatesAtMost(t, 256*len(b), func() { _ = objects.CBOR.Unmarshal(b, into()) })
		}
	})
}

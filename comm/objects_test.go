package comm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A shard is an object that tests send.
type shard struct {
	Name   string
	Files  []string
	Counts map[string]int
	Next   *shard
	When   time.Time
}

func shardOf(rank int) shard {
	s := shard{
		Name: fmt.Sprint("shard ", rank), Counts: map[string]int{"rank": rank}, When: time.Unix(int64(rank), 5).UTC(),
		Next: &shard{Name: "bytes that are no text: \xff"},
	}
	for i := range 100 * rank { // of different sizes
		s.Files = append(s.Files, fmt.Sprint(i))
	}
	return s
}

func wantEqual(what string, got, want any, err error) error {
	if err != nil || !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s: got %#v, %w, want %#v", what, got, err, want)
	}
	return nil
}

func TestObjectsOfEveryRankAtEveryRoot(t *testing.T) {
	onEveryPath(t, func(ctx context.Context, g *Group) error {
		want := make([]shard, g.Size())
		for r := range want {
			want[r] = shardOf(r)
		}
		all, err := AllGatherObject(ctx, g, shardOf(g.Rank()))
		if err := wantEqual("AllGatherObject", all, want, err); err != nil {
			return err
		}
		for root := range g.Size() {
			var elsewhere []shard
			if g.Rank() == root {
				elsewhere = want
			}
			all, err := GatherObject(ctx, g, shardOf(g.Rank()), root)
			if err := wantEqual("GatherObject", all, elsewhere, err); err != nil {
				return err
			}
			one, err := ScatterObject(ctx, g, elsewhere, root)
			if err := wantEqual("ScatterObject", one, want[g.Rank()], err); err != nil {
				return err
			}
			one, err = BroadcastObject(ctx, g, shardOf(g.Rank()), root) // of which nothing stays elsewhere
			if err := wantEqual("BroadcastObject", one, want[root], err); err != nil {
				return err
			}
			s, n := shard{Counts: map[string]int{"old": 1}}, g.Rank()
			if g.Rank() == root {
				s = shardOf(root)
			}
			err = BroadcastObjects(ctx, g, []any{&s, &n}, root)
			if err := wantEqual("BroadcastObjects", []any{s, n}, []any{shardOf(root), root}, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// What no rank has a type for arrives as what CBOR says that it is.
func TestObjectsOfAnyType(t *testing.T) {
	values := []any{nil, true, int64(12), int64(-1), 1.5, "foo", []byte{1}, []any{int64(1), "a"},
		map[any]any{int64(1): int64(2), "k": nil}, time.Unix(1, 2).UTC()}
	inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
		got := make([]any, len(values))
		pointers := make([]any, len(values))
		for i := range got {
			pointers[i] = &got[i]
			if g.Rank() == 0 {
				got[i] = values[i]
			}
		}
		err := BroadcastObjects(ctx, g, pointers, 0)
		return errors.Join(wantEqual("BroadcastObjects", got, values, err), BroadcastObjects(ctx, g, nil, 0))
	})
}

func TestObjectsThatCannotBeEncoded(t *testing.T) {
	const odd = 1
	for name, call := range map[string]func(ctx context.Context, g *Group, v any) error{
		"AllGatherObject": func(ctx context.Context, g *Group, v any) error { _, err := AllGatherObject(ctx, g, v); return err },
		"GatherObject":    func(ctx context.Context, g *Group, v any) error { _, err := GatherObject(ctx, g, v, 2); return err },
		"ScatterObject": func(ctx context.Context, g *Group, v any) error {
			_, err := ScatterObject(ctx, g, []any{1, v, 3}, odd)
			return err
		},
		"BroadcastObjects": func(ctx context.Context, g *Group, v any) error { return BroadcastObjects(ctx, g, []any{&v}, odd) },
		"BroadcastObject": func(ctx context.Context, g *Group, v any) error {
			_, err := BroadcastObject(ctx, g, v, odd)
			return err
		},
		"SendObjects": func(ctx context.Context, g *Group, v any) error { // to whoever is next, around the ring
			if g.Rank() != odd {
				_, err := RecvObjects(ctx, g, []any{&v}, AnySource)
				return err
			}
			return errors.Join(SendObjects(ctx, g, []any{v}, 0), SendObjects(ctx, g, []any{v}, 2))
		},
	} {
		for want, bad := range map[string]any{
			"cannot be encoded: cbor: unsupported type: chan int":   make(chan int),
			"takes 1003 bytes: the limit is 1000 (see WithObjectLi": make([]byte, 1000),
		} {
			t.Run(name, func(t *testing.T) {
				inWorldOf(t, 3, func(ctx context.Context, world *Group) error {
					g, err := NewGroup(ctx, world, []int{2, 1, 0}, WithObjectLimit(1000))
					if err != nil {
						return err
					}
					var v any = "sound"
					if g.Rank() == odd {
						v = bad
					}
					var o *ObjectError
					err = call(ctx, g, v)
					if !errors.As(err, &o) || o.Rank != odd || !strings.Contains(err.Error(), "object of rank 1: ") || !strings.Contains(err.Error(), want) {
						return fmt.Errorf("got %w, want that rank %d %s", err, odd, want)
					}
					return Barrier(ctx, g) // the group goes on
				})
			})
		}
	}
}

// An object that does not fit the type of its destination is the matter of the rank that has the destination.
func TestObjectsThatCannotBeDecoded(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		decodes := func(err error, want int) error {
			var o *ObjectError
			if g.Rank() != 2 {
				return err
			}
			if !errors.As(err, &o) || o.Rank != want || !strings.Contains(err.Error(), "cannot be decoded: cbor: cannot unmarshal UTF-8 text string into Go") {
				return fmt.Errorf("got %w, want that an object of rank %d cannot be decoded", err, want)
			}
			return nil
		}
		first, text, number := 0, "text", 7
		objs := []any{&first, &text}
		switch g.Rank() {
		case 0:
			first = 1
		case 2:
			objs[1] = &number
		}
		err := decodes(BroadcastObjects(ctx, g, objs, 0), 0)
		if err != nil || first != 1 || number != 7 {
			return fmt.Errorf("got %d and %d, %w", first, number, err)
		}
		if g.Rank() == 2 {
			_, err = AllGatherObject(ctx, g, 2)
		} else {
			_, err = AllGatherObject(ctx, g, "text")
			var o *ObjectError
			if !errors.As(err, &o) || o.Rank != 2 {
				return fmt.Errorf("got %w, want that the object of rank 2 cannot be decoded", err)
			}
			err = nil
		}
		if err := decodes(err, 0); err != nil {
			return err
		}
		if g.Rank() == 2 {
			_, err = ScatterObject[int](ctx, g, nil, 1)
		} else {
			_, err = ScatterObject(ctx, g, []string{"a", "b", "c"}, 1)
		}
		return errors.Join(decodes(err, 1), Barrier(ctx, g))
	})
}

func TestObjectCallsThatDiffer(t *testing.T) {
	for want, call := range map[string]func(ctx context.Context, g *Group) error{
		"rank 1 BroadcastObjects(object × 1, at most 67108864 bytes, from 0)": func(ctx context.Context, g *Group) error {
			return BroadcastObjects(ctx, g, []any{new(int), new(int)}[g.Rank():], 0)
		},
		"rank 1 AllGatherObject(object, at most 1000 bytes)": func(ctx context.Context, g *Group) error {
			sub, err := NewGroup(ctx, g, []int{0, 1}, WithObjectLimit(1000*g.Rank()))
			if err != nil {
				return err
			}
			_, err = AllGatherObject(ctx, sub, 1)
			return err
		},
	} {
		inWorldOf(t, 2, func(ctx context.Context, g *Group) error {
			var m *MismatchError
			err := call(ctx, g)
			if err == nil { // the root of a broadcast may be done before it hears of it
				err = AllReduce(ctx, g, []int{0}, Sum)
			}
			if !errors.As(err, &m) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %w, want %s", err, want)
			}
			return nil
		})
	}
}

// jsonCodec counts what goes through it.
type jsonCodec struct{ values *int }

func (c jsonCodec) Marshal(v any) ([]byte, error)      { *c.values++; return json.Marshal(v) }
func (c jsonCodec) Unmarshal(data []byte, v any) error { *c.values++; return json.Unmarshal(data, v) }

func TestCodecOfTheCallersOwn(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, world *Group) error {
		values := 0
		g, err := NewGroup(ctx, world, []int{0, 1, 2}, WithCodec(jsonCodec{&values}))
		if err != nil {
			return err
		}
		sub, err := NewGroup(ctx, g, []int{2, 1, 0}) // has it from g
		if err != nil {
			return err
		}
		all, err := AllGatherObject(ctx, sub, map[string]any{"rank": g.Rank()})
		if err != nil || all[sub.Rank()]["rank"] != float64(g.Rank()) || values != 1+sub.Size() {
			return fmt.Errorf("got %v, %w after %d values", all, err, values)
		}
		return nil
	})
}

// Every rank of a call learns whose object would have lost something, and what; the group goes on.
func TestEveryRankLearnsWhatAnObjectWouldLose(t *testing.T) {
	inWorldOf(t, 3, func(ctx context.Context, g *Group) error {
		mine := any("whole")
		if g.Rank() == 1 {
			mine = map[string]any{"config": struct {
				Name string
				rate float64
			}{"a", 2.5}}
		}
		_, err := AllGatherObject(ctx, g, mine)
		var object *ObjectError
		if !errors.As(err, &object) || object.Rank != 1 || !strings.Contains(err.Error(), "rate is not exported") {
			return fmt.Errorf("AllGatherObject: got %w", err)
		}
		if g.Rank() == 1 {
			err = SendObjects(ctx, g, []any{mine}, 2)
		} else if g.Rank() == 2 {
			_, err = RecvObjects(ctx, g, []any{new(any)}, 1)
		}
		if !errors.As(err, &object) || object.Rank != 1 {
			return fmt.Errorf("SendObjects: got %w", err)
		}
		return Barrier(ctx, g)
	})
}

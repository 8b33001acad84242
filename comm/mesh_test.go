package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestMeshGroups(t *testing.T) {
	inWorldOf(t, 8, func(ctx context.Context, world *Group) error {
		g, err := NewGroup(ctx, world, []int{7, 6, 5, 4, 3, 2, 1, 0}) // the mesh is of its ranks, not the world's
		if err != nil {
			return err
		}
		m, err := NewMesh(ctx, g, []int{2, 2, 2}, "pp", "dp", "tp")
		if err != nil {
			return err
		}
		defer m.Close()
		r := g.Rank()
		c := []int{r / 4, r / 2 % 2, r % 2}
		if !slices.Equal(m.Coordinate(), c) || !slices.Equal(m.Shape(), []int{2, 2, 2}) || !slices.Equal(m.Names(), []string{"pp", "dp", "tp"}) {
			return fmt.Errorf("rank %d is at %v of %v %v", r, m.Coordinate(), m.Shape(), m.Names())
		}
		for i, bit := range []int{4, 2, 1} {
			sub := m.Group(m.Names()[i])
			if want := []int{7 - r&^bit, 7 - (r | bit)}; !slices.Equal(sub.Ranks(), want) || sub.Rank() != c[i] {
				return fmt.Errorf("rank %d: %s is %v, want %v", r, m.Names()[i], sub.Ranks(), want)
			}
			v := []int{r}
			if err := AllReduce(ctx, sub, v, Sum); err != nil || v[0] != r&^bit+(r|bit) {
				return fmt.Errorf("got %d, %w", v[0], err)
			}
		}
		if m.Group("ep") != nil {
			return errors.New("there is a group of no dimension")
		}
		return sliceOfMesh(ctx, m, r)
	})
}

// sliceOfMesh checks slices of TestMeshGroups's mesh.
func sliceOfMesh(ctx context.Context, m *Mesh, r int) error {
	s, err := m.Slice("tp", "pp") // any order
	if err != nil {
		return err
	}
	if !slices.Equal(s.Coordinate(), []int{r % 2, r / 4}) || s.Group("tp") != m.Group("tp") || s.Group("dp") != nil {
		return fmt.Errorf("slice is at %v", s.Coordinate())
	}
	flat, err := s.Flatten()
	if err != nil {
		return err
	}
	at := r & 2
	if want := []int{7 - at, 7 - (at | 4), 7 - (at | 1), 7 - (at | 5)}; !slices.Equal(flat.Ranks(), want) {
		return fmt.Errorf("flattened: %v, want %v", flat.Ranks(), want)
	}
	v := []int{r}
	if err := AllReduce(ctx, flat, v, Sum); err != nil || v[0] != 4*at+10 {
		return fmt.Errorf("got %d, %w", v[0], err)
	}
	one, err := s.Slice("pp")
	if err != nil {
		return err
	}
	again, errAgain := s.Flatten()
	pp, errPP := one.Flatten()
	whole, errWhole := m.Flatten()
	if err := errors.Join(errAgain, errPP, errWhole); err != nil || again != flat || pp != m.Group("pp") || whole.Size() != 8 {
		return fmt.Errorf("got %v, %v, %v, %w", again, pp, whole, err)
	}
	if err := errors.Join(Barrier(ctx, whole), s.Close(), m.Close()); err != nil {
		return err
	}
	if err := Barrier(ctx, m.Group("dp")); !errors.Is(err, ErrClosed) {
		return fmt.Errorf("got %w, want ErrClosed", err)
	}
	return nil
}

func TestMeshArguments(t *testing.T) {
	inWorldOf(t, 6, func(ctx context.Context, g *Group) error {
		for _, c := range []struct {
			shape []int
			names []string
			want  string
		}{
			{[]int{2, 2}, []string{"a", "b"}, "shape [2 2]: want numbers whose product is Size = 6"},
			{[]int{4, 2}, []string{"a", "b"}, "shape [4 2]: want numbers whose product is Size = 6"},
			{[]int{-2, -3}, []string{"a", "b"}, "shape [-2 -3]: want numbers whose product is Size = 6"},
			{[]int{0, 6}, []string{"a", "b"}, "shape [0 6]: want numbers whose product is Size = 6"},
			{[]int{1 << 62, 1 << 62, 6}, []string{"a", "b", "c"}, "shape [4611686018427387904 4611686018427387904 6]: want numbers whose product is Size = 6"},
			{[]int{2, 3}, []string{"a"}, `shape [2 3] and names ["a"]: want as many, and at least one`},
			{nil, nil, `shape [] and names []: want as many, and at least one`},
			{[]int{2, 3}, []string{"a", "a"}, `names ["a" "a"]: want every one different, and none empty`},
			{[]int{2, 3}, []string{"a", ""}, `names ["a" ""]: want every one different, and none empty`},
		} {
			if _, err := NewMesh(ctx, g, c.shape, c.names...); err == nil || err.Error() != "comm: NewMesh: "+c.want {
				return fmt.Errorf("got %w, want %s", err, c.want)
			}
		}
		m, err := NewMesh(ctx, g, []int{2, 3}, "dp", "tp")
		if err != nil {
			return err
		}
		for want, names := range map[string][]string{
			`names ["pp"]: want different ones of ["dp" "tp"]`:      {"pp"},
			`names ["tp" "tp"]: want different ones of ["dp" "tp"]`: {"tp", "tp"},
			`no names given: want some of ["dp" "tp"]`:              nil,
		} {
			if _, err := m.Slice(names...); err == nil || err.Error() != "comm: Slice: "+want {
				return fmt.Errorf("got %w, want %s", err, want)
			}
		}
		return m.Close()
	})
}

func TestMeshesThatDiffer(t *testing.T) {
	inWorldOf(t, 6, func(ctx context.Context, g *Group) error {
		shape := []int{2, 3}
		if g.Rank() == 4 {
			shape = []int{3, 2}
		}
		_, err := NewMesh(ctx, g, shape, "dp", "tp")
		var m *MismatchError
		if !errors.As(err, &m) || !strings.Contains(err.Error(), `rank 4 NewMesh(shape [3 2], names ["dp" "tp"])`) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	})
}

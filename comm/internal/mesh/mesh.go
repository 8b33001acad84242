// Package mesh arranges the ranks of a group in dimensions, and says which ranks are together along some of them.
package mesh

import (
	"fmt"
	"slices"
)

// Axes are dimensions as one rank sees them.
type Axes []Axis

// An Axis is a dimension.
type Axis struct {
	Name string
	Size int
	At   int // this rank's coordinate
	step int // the distance between neighbours along the axis, in ranks of the group that is arranged
}

// Arrange arranges ranks in a shape, whose product is size, in row-major order, and returns the axes as rank sees them.
func Arrange(rank, size int, shape []int, names []string) (Axes, error) {
	if len(shape) == 0 || len(shape) != len(names) {
		return nil, fmt.Errorf("shape %v and names %q: want as many, and at least one", shape, names)
	}
	axes := make(Axes, len(shape))
	places := 1
	for i := len(shape) - 1; i >= 0; i-- {
		n := shape[i]
		if n < 1 || n > size/places {
			return nil, fmt.Errorf("shape %v: want numbers whose product is Size = %d", shape, size)
		}
		if names[i] == "" || slices.Index(names, names[i]) < i {
			return nil, fmt.Errorf("names %q: want every one different, and none empty", names)
		}
		axes[i] = Axis{Name: names[i], Size: n, step: places, At: rank / places % n}
		places *= n
	}
	if places != size {
		return nil, fmt.Errorf("shape %v: want numbers whose product is Size = %d", shape, size)
	}
	return axes, nil
}

// Names are the names of the axes.
func (a Axes) Names() []string { return each(a, func(x Axis) string { return x.Name }) }

// Shape is the number of ranks along each axis.
func (a Axes) Shape() []int { return each(a, func(x Axis) int { return x.Size }) }

// Coordinate is this rank's place along each axis.
func (a Axes) Coordinate() []int { return each(a, func(x Axis) int { return x.At }) }

func each[T any](axes Axes, of func(Axis) T) []T {
	all := make([]T, len(axes))
	for i, x := range axes {
		all[i] = of(x)
	}
	return all
}

// Slice returns the named axes, in the order of names.
func (a Axes) Slice(names ...string) (part Axes, err error) {
	for i, name := range names {
		at := slices.Index(a.Names(), name)
		if at < 0 || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("names %q: want different ones of %q", names, a.Names())
		}
		part = append(part, a[at])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no names given: want some of %q", a.Names())
	}
	return part, nil
}

// Ranks returns the ranks that differ from rank, which these are the axes of, only along the axes, in row-major order.
func (a Axes) Ranks(rank int) []int {
	ranks := []int{rank}
	for _, x := range a {
		ranks[0] -= x.At * x.step
	}
	for _, x := range a {
		var wider []int
		for _, r := range ranks {
			for i := range x.Size {
				wider = append(wider, r+i*x.step)
			}
		}
		ranks = wider
	}
	return ranks
}

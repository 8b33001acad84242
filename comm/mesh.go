package comm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gorun/gorun/comm/internal/mesh"
)

// A Mesh arranges the ranks of a group in dimensions with names, such as dp × tp × pp, in row-major order: the last
// coordinate changes fastest. Along each dimension a rank has a group with the ranks that differ from it only in that
// coordinate. Its rank in that group is the coordinate.
type Mesh struct {
	shared *meshGroups
	axes   mesh.Axes
}

// NewMesh arranges the ranks of g in a shape, whose product is Size, with a name for every dimension. Every rank of g
// makes the same call. It costs one barrier, however many groups there are.
func NewMesh(ctx context.Context, g *Group, shape []int, names ...string) (*Mesh, error) {
	if err := checkGroup("NewMesh", g); err != nil {
		return nil, err
	}
	axes, err := mesh.Arrange(g.Rank(), g.Size(), shape, names)
	if err != nil {
		return nil, g.core.Refused(&ArgumentError{Op: "NewMesh", Err: err})
	}
	seq, err := g.core.AgreeOnMesh(ctx, shape, names)
	if err != nil {
		return nil, public(err)
	}
	m := &Mesh{shared: &meshGroups{parent: g, seq: seq, groups: map[string]*Group{}}, axes: axes}
	for _, a := range axes {
		if _, err := m.shared.group(mesh.Axes{a}); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// Names are the names of m's dimensions.
func (m *Mesh) Names() []string {
	return m.all().Names()
}

// Shape is the number of ranks along each dimension.
func (m *Mesh) Shape() []int {
	return m.all().Shape()
}

// Coordinate is this rank's place along each dimension.
func (m *Mesh) Coordinate() []int {
	return m.all().Coordinate()
}

// all returns m's axes; a nil Mesh has none.
func (m *Mesh) all() mesh.Axes {
	if m == nil {
		return nil
	}
	return m.axes
}

// Group is this rank's group along the dimension called name. It is nil if m has no such dimension. Then the error of a
// call on the group says which dimensions there are.
func (m *Mesh) Group(name string) *Group {
	along, err := m.all().Slice(name)
	if err != nil {
		m.noteUnknown(name)
		return nil
	}
	g, _ := m.shared.group(along) // made by NewMesh
	return g
}

// Slice is the part of m that contains this rank and spans the named dimensions, in the order of names. It shares m's
// groups, and costs nothing.
func (m *Mesh) Slice(names ...string) (*Mesh, error) {
	if err := m.check("Slice"); err != nil {
		return nil, err
	}
	axes, err := m.axes.Slice(names...)
	if err != nil {
		return nil, &ArgumentError{Op: "Slice", Err: err}
	}
	return &Mesh{m.shared, axes}, nil
}

// Flatten is the group of all ranks of m, in row-major order. For a slice of one dimension that is its Group. Flatten
// sends nothing. Calls on equal slices return the same group.
func (m *Mesh) Flatten() (*Group, error) {
	if err := m.check("Flatten"); err != nil {
		return nil, err
	}
	return m.shared.group(m.axes)
}

// check checks that m, the mesh of a call of op, is not nil.
func (m *Mesh) check(op string) error {
	if len(m.all()) == 0 {
		return badArgument(op, "the mesh is nil: NewMesh makes one")
	}
	return nil
}

// Close leaves all groups of m. If m is a slice, it also leaves the groups of the whole mesh and of its other slices.
func (m *Mesh) Close() error {
	if m == nil || m.shared == nil {
		return nil
	}
	return m.shared.close()
}

// meshGroups has the groups of a mesh and its slices, by the names of the dimensions that they span.
type meshGroups struct {
	parent *Group
	seq    uint64 // of the NewMesh that made it

	unknown atomic.Pointer[string] // the last name without a dimension that Group was called with, and the names that there are

	mu     sync.Mutex
	groups map[string]*Group
}

// lastUnknown is the open mesh whose Group was last called with an unknown name. The error of a call on a nil group
// needs it, because a nil group does not know its mesh.
var lastUnknown atomic.Pointer[meshGroups]

// noteUnknown records that Group was called with a name of no dimension.
func (m *Mesh) noteUnknown(name string) {
	if m == nil || m.shared == nil {
		return
	}
	text := fmt.Sprintf("%q was asked for, there are %q", name, m.Names())
	m.shared.unknown.Store(&text)
	lastUnknown.Store(m.shared)
}

// group returns this rank's group across axes. All its ranks derive it from the one barrier of the mesh.
func (s *meshGroups) group(axes mesh.Axes) (*Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprintf("%q", axes.Names())
	if g := s.groups[name]; g != nil {
		return g, nil
	}
	members := axes.Ranks(s.parent.Rank())
	for i, r := range members {
		members[i] = s.parent.WorldRank(r)
	}
	g, err := s.parent.part("NewMesh", s.seq, name, members, s.parent.settings())
	if err == nil {
		s.groups[name] = g
	}
	return g, err
}

func (s *meshGroups) close() error {
	lastUnknown.CompareAndSwap(s, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, g := range s.groups {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

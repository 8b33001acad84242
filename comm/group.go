package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/bootstrap"
	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/objects"
	"github.com/gorun/gorun/comm/internal/worker"
)

// A Group is an ordered set of ranks that talk to each other, a communicator: the world that [Init] returns, or a part
// of it that [NewGroup], [Split] or [NewMesh] has made. This rank is a member of every Group that it has. NewGroup and
// Split return a nil Group to ranks that are not members. A nil Group has no ranks: every call on it returns an
// [ArgumentError], and Close does nothing.
type Group struct {
	core   *core.Group
	world  *worker.World
	format objects.Format // of objects
}

// process is what this process keeps from one world to the next.
var process = worker.New(func(g *core.Group) any { return flightOf(g) })

func newGroup(w *worker.World, g *core.Group, f objects.Format) *Group { return &Group{g, w, f} }

// untyped returns g below the API.
func (g *Group) untyped() *core.Group {
	if g == nil {
		return core.NoGroup
	}
	return g.core
}

// checkGroup checks that g, the group of a call of op, is not nil.
func checkGroup(op string, g *Group) error {
	if g == nil {
		return &ArgumentError{Op: op, Err: errNoGroup()}
	}
	return nil
}

// errNoGroup returns the error of a call on a nil group.
func errNoGroup() error {
	if mesh := lastUnknown.Load(); mesh != nil {
		return fmt.Errorf("%w, and where Mesh.Group finds no such dimension: %s", core.ErrNoGroup, *mesh.unknown.Load())
	}
	return core.ErrNoGroup
}

// Rank is this process's rank in the group, from 0 to Size-1. In a nil group it is -1.
func (g *Group) Rank() int { return g.untyped().Rank() }

// Size is the number of ranks in the group.
func (g *Group) Size() int { return g.untyped().Size() }

// Ranks are the group's world ranks in group order.
func (g *Group) Ranks() []int { return slices.Clone(g.untyped().Ranks) }

// WorldRank is the world rank of a group rank, or -1 when there is none.
func (g *Group) WorldRank(rank int) int { return g.untyped().WorldRank(rank) }

// GroupRank is the group rank of a world rank, or -1 when it is not a member.
func (g *Group) GroupRank(world int) int { return g.untyped().GroupRank(world) }

func (g *Group) String() string {
	if g == nil {
		return "no group"
	}
	return fmt.Sprintf("group %v", g.core.Ranks)
}

// Close leaves the group. Operations under way fail with [ErrClosed]. Members that still need this rank get a
// [PeerError], so call [Barrier] first if they might. To close the world leaves all groups: messages that have been
// sent are written out, and everything that comm has started in this process ends. Close is local and idempotent. If
// the group has failed, Close waits until the members that can be reached know why, at most until a second after the
// failure. If Close finds that members have made other calls than this rank, it returns the [MismatchError]. It also
// returns an error if an I-form has not ended and nobody has waited for its Work: then a message is lost, or a
// collective is not complete.
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	differ, err := g.world.Close(g.core)
	for i, err := range differ {
		differ[i] = public(err)
	}
	return errors.Join(append(differ, err)...)
}

// Err returns why the group has failed, as a call on it would, or an error that wraps [ErrClosed] if this rank has closed
// it. It returns nil as long as the group can be used.
func (g *Group) Err() error { return public(g.untyped().Err()) }

// Done returns a channel that is closed when the group fails, or this rank closes it. A rank learns of a failure without
// a call if gorun ends the round, or if another member has found the failure.
func (g *Group) Done() <-chan struct{} { return g.untyped().Done() }

// Abort makes the group fail on every member: pending and later calls return an [AbortError] with cause. It waits for
// at most 100 ms until the members know. Only the first failure of a group counts.
func (g *Group) Abort(cause error) {
	if g == nil {
		return
	}
	if cause == nil {
		cause = errors.New("no reason given")
	}
	g.core.Abort(cause)
}

// NewGroup makes a group of some ranks of parent: ranks[i] of parent becomes rank i. Every rank of parent calls it with
// the same ranks. It returns nil, nil on ranks that are not members.
func NewGroup(ctx context.Context, parent *Group, ranks []int, opts ...GroupOption) (*Group, error) {
	if err := checkGroup("NewGroup", parent); err != nil {
		return nil, err
	}
	members, err := parent.core.MembersOf(ranks)
	cfg, wrong := parent.configOf(opts)
	if err = cmp.Or(err, wrong); err != nil {
		return nil, parent.core.Refused(&ArgumentError{Op: "NewGroup", Err: err})
	}
	seq, err := parent.core.AgreeOnGroup(ctx, ranks, cfg.Tuning.String())
	if err != nil || !slices.Contains(members, parent.world.Rank) {
		return nil, public(err)
	}
	return parent.part("NewGroup", seq, "", members, cfg)
}

// NewGroupOf makes a group of some ranks of parent: ranks[i] of parent becomes rank i. Only these ranks call it, all with
// the same ranks, name and tuning. It sends nothing, and waits for nobody: members meet in the first call on the group.
// That is also when they share memory, if they can, as those of any other group. MPI: MPI_Comm_create_group.
//
// Names tell groups of the same ranks apart: the same ranks can make a group of a name only once from one parent, even
// if they have closed it. That a second time, a rank that is no member, and a parent that has failed or is closed are
// errors. If members pass different ranks, names or tunings, no message of one reaches the other, and their first call
// on the group fails once its timeout is over.
func NewGroupOf(ctx context.Context, parent *Group, ranks []int, name string, opts ...GroupOption) (*Group, error) {
	const op = "NewGroupOf"
	if err := checkGroup(op, parent); err != nil {
		return nil, err
	}
	cfg, err := parent.configOf(opts)
	if err != nil {
		return nil, badArgument(op, "%w", err)
	}
	if err := cmp.Or(ctx.Err(), parent.core.Comm.Err()); err != nil {
		return nil, public(&core.Error{Group: parent.core, Op: op, Elem: 1, Err: err})
	}
	members, id, err := parent.core.MembersAlone(ranks, name, cfg.Tuning.String())
	if err != nil {
		return nil, badArgument(op, "%w", err)
	}
	return parent.member(op, id, members, cfg)
}

// Split divides parent into groups. The ranks that pass the same color form a group, in the order of their keys. Ranks
// with equal keys are in the order of their ranks in parent. Every rank of parent calls it. A rank that passes a
// negative color gets nil, nil. The groups inherit parent's timeout, codec, object limit and tuning.
func Split(ctx context.Context, parent *Group, color, key int) (*Group, error) {
	if err := checkGroup("Split", parent); err != nil {
		return nil, err
	}
	members, seq, err := parent.core.Split(ctx, color, key)
	if err != nil || members == nil {
		return nil, public(err)
	}
	return parent.part("Split", seq, "", members, parent.settings())
}

// settings returns what a group made of g inherits from it.
func (g *Group) settings() config {
	return config{Config: bootstrap.Config{Timeout: g.core.Timeout, Tuning: g.core.Planner().Tuning}, Objects: g.format}
}

// configOf returns the settings of a group that is made of g with opts.
func (g *Group) configOf(opts []GroupOption) (config, error) {
	cfg := g.settings()
	setAll(&cfg, opts)
	return cfg, cfg.Check()
}

// part makes the group of the members on which g's call of op, number seq, has agreed.
func (g *Group) part(op string, seq uint64, name string, members []int, cfg config) (*Group, error) {
	return g.member(op, g.core.IDAfter(seq, name, members), members, cfg)
}

// member makes the group of members with the same id, for op.
func (g *Group) member(op string, id uint64, members []int, cfg config) (*Group, error) {
	part, err := g.world.NewGroup(id, members, cfg.Timeout, cfg.Tuning)
	if err != nil {
		return nil, fmt.Errorf("comm: %s: %w", op, err)
	}
	return newGroup(g.world, part, cfg.Objects), nil
}

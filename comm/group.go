package comm

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/shm"
)

// A Group is an ordered set of ranks that talk to each other: the world that [Init] returns, or a part of it made
// by [NewGroup], [Split] or [NewMesh]. This rank is a member of every Group that it holds. A nil Group, which the first two
// return to ranks that are no members, has no ranks: every call on it is an [ArgumentError], and Close does nothing.
type Group struct {
	w       *world
	lane    *endpoint.Lane
	id      uint64
	ranks   []int       // world ranks in group order
	index   map[int]int // world rank -> group rank
	rank    int         // this rank's group rank
	isWorld bool

	timeout     time.Duration
	codec       Codec
	objectLimit int
	choose      plan.Choices // by what way members do what they do
	turns       turns
	history     endpoint.History // of the collectives whose turn has come
	logged      sync.Once        // the failure
	told        atomic.Bool      // a call has returned that calls do not match
	flow        flow
	flat        atomic.Bool                 // members share no memory
	left        atomic.Pointer[collective]  // see spare
	plans       map[endpoint.Call]*keptPlan // see planned
	anew        plan.Plan                   // of the call under way, if lengths may differ from those of the last one
	scratch     []uint64                    // see room
	partial     []uint64                    // see memory
	taken       int                         // words of it

	team    atomic.Pointer[shm.Team] // of all members, if they share memory
	nodes   *nodes                   // whoever carries out a collective: where members share memory, if that is on several machines
	present collective               // the one that enter has begun
	running *collective              // the one that a team carries out

	unattached bool // whoever carries out a collective: members may share memory and have not tried
}

// world is what the groups of a process share.
type world struct {
	rank int
	ep   *endpoint.Endpoint
	info []rankInfo // by world rank
	log  *slog.Logger

	leave []func() // end what Init has begun beside ep
	piece int      // how many bytes of a plan's message travel at once

	desk      *shm.Desk // where ranks of this machine get the memory that this one makes; nil: they get none
	heap      *shm.Heap // of Alloc; every group holds it
	token     []byte
	mustShare bool
	without   func(problem error) error // says that there is no shared memory
}

// rankInfo is what ranks tell each other when they join.
type rankInfo struct {
	Addr string `json:"addr"` // host:port of its listener
	Host string `json:"host"` // its machine's name
	PID  int    `json:"pid"`
	CPUs string `json:"cpus,omitempty"` // that it may use; see shm.CPUs
	TLS  bool   `json:"tls,omitempty"`  // whether it encrypts what leaves the machine

	OwnToken string `json:"own_token,omitempty"` // the fingerprint of its loopback token, if it was given none

	Tuning string `json:"tuning,omitempty"` // that it has been given; rank 0's counts

	machine.Place        // where it runs
	Desk          string `json:"desk,omitempty"` // where others get the memory that it makes; empty: it shares none
}

// memory tells ranks that may share memory, as all have a desk, from others.
func (r *rankInfo) memory() string { return r.Kernel + " " + r.Network }

func newGroup(w *world, id uint64, ranks []int, cfg config) (*Group, error) {
	lane, err := w.ep.Open(id, ranks)
	if err != nil {
		return nil, err
	}
	g := &Group{
		w: w, lane: lane, id: id, ranks: ranks, index: make(map[int]int, len(ranks)),
		timeout: cfg.timeout, codec: cmp.Or(cfg.codec, defaultCodec), objectLimit: cmp.Or(cfg.objectLimit, DefaultObjectLimit),
		choose: plan.NewChoices(w.ways(ranks), cfg.rules),
	}
	for i, r := range ranks {
		g.index[r] = i
	}
	g.rank = g.index[w.rank]
	g.unattached = w.canShare(ranks)
	g.flat.Store(!g.unattached)
	g.present.g = g
	w.heap.Hold()
	open.add(g)
	return g, nil
}

// settings are what a part of g has from it.
func (g *Group) settings() config {
	rules := g.choose.Tuning
	return config{timeout: g.timeout, codec: g.codec, objectLimit: g.objectLimit, tuning: rules.String(), rules: rules}
}

// Rank is this process's rank in the group, from 0 to Size-1; -1 in a nil group, of which it is no member.
func (g *Group) Rank() int {
	if g == nil {
		return -1
	}
	return g.rank
}

// Size is the number of ranks in the group.
func (g *Group) Size() int {
	if g == nil {
		return 0
	}
	return len(g.ranks)
}

// Ranks are the group's world ranks in group order.
func (g *Group) Ranks() []int {
	if g == nil {
		return nil
	}
	return slices.Clone(g.ranks)
}

// WorldRank is the world rank of a group rank, or -1 when there is none.
func (g *Group) WorldRank(rank int) int {
	if rank < 0 || rank >= g.Size() {
		return -1
	}
	return g.ranks[rank]
}

// has says whether there is such a rank.
func (g *Group) has(rank int) bool { return rank >= 0 && rank < len(g.ranks) }

// GroupRank is the group rank of a world rank, or -1 when it is not a member.
func (g *Group) GroupRank(world int) int {
	if g == nil {
		return -1
	}
	if i, ok := g.index[world]; ok {
		return i
	}
	return -1
}

func (g *Group) String() string {
	if g == nil {
		return "no group"
	}
	return fmt.Sprintf("group %v", g.ranks)
}

// Close leaves the group. Operations under way fail with [ErrClosed]; members that still need this rank get a
// [PeerError], so call [Barrier] first when they might. Closing the world leaves all groups: what has been sent is written
// out, and all that comm has started in this process ends. Close is local and idempotent. If the group has failed less than a
// second ago, it waits for so long at most until the members that can be reached know why. If it turns out only now that members have
// made other calls than this rank, Close returns the [MismatchError].
func (g *Group) Close() error {
	if g == nil {
		return nil
	}
	closed := open.remove(g)
	var err error
	for _, other := range closed {
		err = errors.Join(err, other.compare())
	}
	g.lane.Settle(lastNewsTimeout)
	g.lane.Close()
	if g.isWorld {
		lately.CompareAndSwap(g, nil)
		err = errors.Join(err, g.w.ep.Close(), g.w.desk.Close())
		for _, leave := range g.w.leave {
			leave()
		}
	}
	for _, other := range closed {
		other.turns.retire(other.disband)
	}
	return err
}

// Abort fails the group on every member: pending and later calls return an [AbortError] with cause. It takes at most
// 100 ms to tell them, and only a group's first failure counts.
func (g *Group) Abort(cause error) {
	if g == nil {
		return
	}
	if cause == nil {
		cause = errors.New("no reason given")
	}
	g.lane.Abort(&endpoint.Failure{Kind: endpoint.Aborted, Rank: g.w.rank, Text: cause.Error(), Err: cause})
	g.lane.Settle(newsTimeout)
}

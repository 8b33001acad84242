package comm

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gorun/gorun/comm/internal/endpoint"
)

// A Group is an ordered set of ranks that talk to each other: the world that [Init] returns, or a part of it made
// by [NewGroup]. This rank is a member of every Group that it holds.
type Group struct {
	w       *world
	lane    *endpoint.Lane
	id      uint64
	ranks   []int       // world ranks in group order
	index   map[int]int // world rank -> group rank
	rank    int         // this rank's group rank
	timeout time.Duration
	isWorld bool
	p2p     atomic.Uint64 // point-to-point calls so far
	turns   turns
	scratch []uint64 // see room
}

// world is what the groups of a process share.
type world struct {
	rank int
	ep   *endpoint.Endpoint
	info []rankInfo // by world rank
}

// rankInfo is what ranks tell each other when they join.
type rankInfo struct {
	Addr string `json:"addr"` // host:port of its listener
	Host string `json:"host"` // its machine's name
	PID  int    `json:"pid"`
}

func newGroup(w *world, id uint64, ranks []int, timeout time.Duration) (*Group, error) {
	lane, err := w.ep.Open(id, ranks)
	if err != nil {
		return nil, err
	}
	g := &Group{w: w, lane: lane, id: id, ranks: ranks, index: make(map[int]int, len(ranks)), timeout: timeout}
	for i, r := range ranks {
		g.index[r] = i
	}
	g.rank = g.index[w.rank]
	return g, nil
}

// Rank is this process's rank in the group, from 0 to Size-1.
func (g *Group) Rank() int { return g.rank }

// Size is the number of ranks in the group.
func (g *Group) Size() int { return len(g.ranks) }

// Ranks are the group's world ranks in group order.
func (g *Group) Ranks() []int { return slices.Clone(g.ranks) }

// WorldRank is the world rank of a group rank, or -1 when there is none.
func (g *Group) WorldRank(rank int) int {
	if rank < 0 || rank >= len(g.ranks) {
		return -1
	}
	return g.ranks[rank]
}

// GroupRank is the group rank of a world rank, or -1 when it is not a member.
func (g *Group) GroupRank(world int) int {
	if i, ok := g.index[world]; ok {
		return i
	}
	return -1
}

func (g *Group) String() string { return fmt.Sprintf("group %v", g.ranks) }

// Close leaves the group. Closing the world leaves all groups: what has been sent is written out, peers are told,
// and all that comm has started in this process ends. Operations under way fail with [ErrClosed]. Close is local
// and idempotent; peers that still need this rank get a [PeerError]. Call [Barrier] first when they might.
func (g *Group) Close() error {
	g.lane.Close()
	if !g.isWorld {
		return nil
	}
	return g.w.ep.Close()
}

// Abort fails the group on every member: pending and later calls return an [AbortError] with cause. It takes at most
// 100 ms to tell them, and only a group's first failure counts. Members that have never talked to one that knows learn of it
// when they first do.
func (g *Group) Abort(cause error) {
	if cause == nil {
		cause = errors.New("no reason given")
	}
	g.lane.Fail(&endpoint.Failure{Kind: endpoint.Aborted, Rank: g.w.rank, Text: cause.Error(), Err: cause})
	g.lane.Settle(newsTimeout)
}

// NewGroup makes a group of the given ranks of parent, in the given order: ranks[i] of parent becomes rank i.
// Every rank of parent calls it, with the same ranks; it returns nil, nil where the rank is not among them.
// Of the options only [WithTimeout] matters; without it the group has parent's timeout.
func NewGroup(ctx context.Context, parent *Group, ranks []int, opts ...Option) (*Group, error) {
	cfg := config{timeout: parent.timeout}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.timeout <= 0 {
		return nil, badArgument("NewGroup", "timeout %v: want a positive duration", cfg.timeout)
	}
	members := make([]int, 0, len(ranks))
	for _, r := range ranks {
		w := parent.WorldRank(r)
		if w < 0 {
			return nil, badArgument("NewGroup", "no rank %d in a group of %d", r, parent.Size())
		}
		if slices.Contains(members, w) {
			return nil, badArgument("NewGroup", "rank %d is named twice in %v", r, ranks)
		}
		members = append(members, w)
	}
	if len(members) == 0 {
		return nil, badArgument("NewGroup", "no ranks given: a group has at least one")
	}
	// The barrier makes sure that all mean the same ranks, and its number gives the group a name that all know.
	c := meeting(parent, endpoint.Call{Op: uint8(callNewGroup), Count: checksum(members)})
	if err := c.run(ctx); err != nil || !slices.Contains(members, parent.w.rank) {
		return nil, err
	}
	id := checksum([]int{int(parent.id), int(c.seq)})
	g, err := newGroup(parent.w, id, members, cfg.timeout)
	if err != nil {
		return nil, fmt.Errorf("comm: NewGroup: %w", err)
	}
	return g, nil
}

// checksum is a 64-bit FNV-1a hash of numbers, the same on every rank.
func checksum(numbers []int) uint64 {
	h := fnv.New64a()
	for _, n := range numbers {
		fmt.Fprintf(h, "%d,", n)
	}
	return h.Sum64()
}

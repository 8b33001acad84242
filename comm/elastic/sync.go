package elastic

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/gorun/gorun/comm"
)

// A status is what a rank says of its State when a world begins.
type status struct {
	holding
	layout uint64 // its checksum
	packed int    // bytes of the packed part of its commit
}

// sync sets the variables of all ranks to the newest commit. All ranks of world call it, with the round of gorun whose world it is. If it
// fails, the last commit is as it was, and the variables may have any contents.
func (s *State) sync(ctx context.Context, world *comm.Group, round uint64, own layout) error {
	statuses, err := exchangeStatuses(ctx, world, status{holding{s.last, s.partial, streamsOf(runtime.GOMAXPROCS(0))}, own.checksum(), len(s.commit.packed)})
	if err != nil {
		return err
	}
	holdings := make([]holding, len(statuses))
	for r := range statuses {
		holdings[r] = statuses[r].holding
	}
	a, err := agree(holdings)
	if err != nil {
		return err
	}
	first := a.holders[0]
	if slices.ContainsFunc(statuses, func(r status) bool { return r.layout != statuses[first].layout }) {
		all, err := comm.AllGatherObject(ctx, world, own)
		if err != nil {
			return err
		}
		return layoutError(all, first, world.Rank())
	}
	switch {
	case !slices.Contains(a.holders, world.Rank()):
		err = s.syncReceiver(ctx, world, a, statuses[first].packed)
	case s.last == commitID{}:
		err = s.syncFirst(ctx, world, a)
	default:
		err = s.syncHolder(ctx, world, a)
	}
	if err != nil {
		return err
	}
	s.setLast(commitID{round, a.number})
	return comm.Barrier(ctx, world) // when one rank goes on, all have the commit
}

func exchangeStatuses(ctx context.Context, world *comm.Group, own status) ([]status, error) {
	words := []uint64{own.round, own.number, 0, own.layout, uint64(own.packed), uint64(own.streams)}
	if own.partial {
		words[2] = 1
	}
	all := make([]uint64, len(words)*world.Size())
	if err := comm.AllGather(ctx, world, all, words); err != nil {
		return nil, err
	}
	statuses := make([]status, world.Size())
	for r := range statuses {
		w := all[r*len(words):]
		statuses[r] = status{holding{commitID{w[0], w[1]}, w[2] != 0, int(w[5])}, w[3], int(w[4])}
	}
	return statuses, nil
}

// syncFirst sends the variables of this rank, which become the first commit.
func (s *State) syncFirst(ctx context.Context, world *comm.Group, a agreement) error {
	large := largeSlices(s.items)
	err := transfer(ctx, world, a, snapshot{s.commit.packed, large}, nil)
	copyAll(s.commit.large, large)
	return err
}

// syncHolder sends the commit to those that do not have it, makes sure that the other holders have the same, and goes back to it.
func (s *State) syncHolder(ctx context.Context, world *comm.Group, a agreement) error {
	if err := transfer(ctx, world, a, s.commit, nil); err != nil {
		return err
	}
	if err := compareCommits(ctx, world, a, s.items, &s.commit); err != nil {
		return err
	}
	return s.restore()
}

// syncReceiver receives the commit, whose packed part has so many bytes.
func (s *State) syncReceiver(ctx context.Context, world *comm.Group, a agreement, packed int) error {
	if most := maxPacked(s.items); packed < 0 || packed > most {
		return fmt.Errorf("elastic: rank %d offers a state of %d bytes: the limit is %d", a.holders[0], packed, most)
	}
	large, received := largeSlices(s.items), make([]byte, packed)
	copies := [][][]byte{large}
	if s.last == (commitID{}) { // otherwise the old commit is needed if the holders of the newer one die
		s.partial = true
		copies = append(copies, s.commit.large)
	}
	if err := transfer(ctx, world, a, snapshot{received, large}, copies); err != nil {
		return err
	}
	if err := compareCommits(ctx, world, a, s.items, nil); err != nil {
		return err
	}
	set, err := unpack(received, s.items)
	if err != nil {
		return err
	}
	set()
	s.commit.packed = received
	if s.last != (commitID{}) {
		copyAll(s.commit.large, large)
	}
	s.partial = false
	return nil
}

// compareCommits returns an error on all ranks unless all holders have the same commit, as far as checksums say. A
// rank that is not a holder has none.
func compareCommits(ctx context.Context, world *comm.Group, a agreement, items []Item, commit *snapshot) error {
	if len(a.holders) == 1 {
		return nil
	}
	var sums []uint32
	if commit != nil {
		sums = commit.checksums(items)
	}
	all := make([]uint32, world.Size())
	if err := comm.AllGather(ctx, world, all, []uint32{combined(sums)}); err != nil {
		return err
	}
	first := a.holders[0]
	if !slices.ContainsFunc(a.holders, func(r int) bool { return all[r] != all[first] }) {
		return nil
	}
	each, err := comm.AllGatherObject(ctx, world, sums)
	if err != nil {
		return err
	}
	for _, r := range a.holders {
		for n, i := range items {
			if len(each[r]) == len(items) && len(each[first]) == len(items) && each[r][n] != each[first][n] {
				return &comm.ArgumentError{Op: "elastic.Run", Err: fmt.Errorf("commit %d has other contents of %q on rank %d than on rank %d: "+
					"all ranks have to commit the same, at the same point of the program", a.number, i.name, first, r)}
			}
		}
	}
	return errors.New("elastic: commits of equal contents have different checksums")
}

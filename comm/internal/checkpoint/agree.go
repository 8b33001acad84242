package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gorun/gorun/comm"
)

// A report is what a rank says of its copies when a world begins. It travels as CBOR.
type report struct {
	Layout  uint64 // its checksum
	Parts   []string
	Had     int // how many parts all ranks had in its last world
	Copies  []copyReport
	Begun   bool   // it has been in a world that has begun
	Sources int    // from how many ranks it can receive at the same time
	Node    string // ranks on different nodes do not fail together
}

// A copyReport is what a rank says of one copy. With the zero ID, it is of the rank's own variables before there was a commit.
type copyReport struct {
	Name   string
	ID     ID
	Agreed uint64 // the last round that has begun with it
}

// An agreement says how the ranks of a world come to the same commit.
type agreement struct {
	round     uint64 // of the world
	id        ID
	agreed    uint64 // the last round before this one that has begun with it
	initial   bool   // there was no commit: the first one is made of the first rank's variables, and of all parts
	holders   []int  // ranks that have what is shared, in order: one at least
	receivers []int  // the other ranks, in order
	mostFrom  int    // from how many ranks each receiver can receive at the same time

	owners     map[string]int // the rank that each part belongs to
	toOwners   []move         // parts of the commit that are sent at first
	toPartners []move         // those that are sent after that
	eachCommit []move         // those that are sent after each commit of this world
}

// A move takes a part from one rank to another.
type move struct {
	name     string
	from, to int
}

// errNothingWhole says that no rank of a world has what is shared.
var errNothingWhole = errors.New("elastic: all ranks that had the state have died")

// agree decides on the newest commit of which some rank has what is shared, and some rank each part. If there is none, and no world has begun
// yet, the first commit is what the variables have: of the first rank, and of the rank that a part belongs to.
func agree(all []report, round uint64) (agreement, error) {
	owners, err := ownersOf(all)
	if err != nil {
		return agreement{}, err
	}
	var missing error
	ids, rounds := commitsIn(all)
	for _, id := range ids {
		a, err := agreeOn(all, owners, id)
		if err == nil {
			a.round, a.agreed = round, rounds[id]
			return a, nil
		}
		missing = cmp.Or(missing, err)
	}
	if slices.ContainsFunc(all, func(r report) bool { return r.Begun }) {
		return agreement{}, cmp.Or(missing, errNothingWhole)
	}
	a, err := agreeOn(all, owners, ID{})
	a.round, a.id, a.initial = round, ID{round, 1}, true
	return a, err
}

// ownersOf returns the rank that each part belongs to.
func ownersOf(all []report) (map[string]int, error) {
	owners := make(map[string]int)
	for rank, r := range all {
		for _, name := range r.Parts {
			if other, both := owners[name]; both {
				return nil, argument("part %q is in the States of ranks %d and %d: a part belongs to one rank", name, other, rank)
			}
			owners[name] = rank
		}
	}
	return owners, nil
}

// commitsIn returns the commits that ranks have copies of, the newest first. The age of a commit is the last round in which it
// was made, or that has begun with it. So a commit with which the others have gone on is newer than one of a rank that was cut off.
func commitsIn(all []report) (newestFirst []ID, rounds map[ID]uint64) {
	rounds = make(map[ID]uint64) // the last one of each
	for _, r := range all {
		for _, c := range r.Copies {
			if c.ID != (ID{}) {
				rounds[c.ID] = max(rounds[c.ID], c.ID.Round, c.Agreed)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(rounds), func(a, b ID) int {
		return cmp.Or(cmp.Compare(rounds[b], rounds[a]), cmp.Compare(b.Number, a.Number), b.compare(a))
	}), rounds
}

// agreeOn returns how all ranks get a commit. The zero ID stands for the variables as they were before the first commit. The error names a part that
// no rank has, or that belongs to no rank any more.
func agreeOn(all []report, owners map[string]int, id ID) (agreement, error) {
	has := make(map[string][]int) // the ranks with a copy, by name
	for rank, r := range all {
		for _, c := range r.Copies {
			if _, wanted := owners[c.Name]; c.ID == id && c.Name != Shared && !wanted {
				return agreement{}, argument("part %q is in the State of no rank any more: rank %d has a copy of it", c.Name, rank)
			}
			if c.ID == id && (id != ID{} || c.Name == Shared || owners[c.Name] == rank) { // only its owner has a part before there is a commit
				has[c.Name] = append(has[c.Name], rank)
			}
		}
	}
	a := agreement{id: id, owners: owners, holders: has[Shared]}
	if len(a.holders) == 0 {
		return a, errNothingWhole
	}
	if id == (ID{}) { // what is shared has not been the same on all ranks yet: the first one's counts
		a.holders = a.holders[:1]
	}
	for rank, r := range all {
		if !slices.Contains(a.holders, rank) {
			a.receivers = append(a.receivers, rank)
			if a.mostFrom == 0 || r.Sources < a.mostFrom {
				a.mostFrom = r.Sources
			}
		}
	}
	a.planParts(all, has)
	for _, name := range a.parts() {
		if len(has[name]) == 0 {
			return a, argument("nobody has part %q of rank %d: the rank that had it and the one with its copy are gone, or there never was one",
				name, owners[name])
		}
	}
	if had := slices.MaxFunc(all, func(a, b report) int { return cmp.Compare(a.Had, b.Had) }).Had; had > len(owners) {
		return a, argument("all ranks had %d parts, and have %d: a job with parts keeps its number of ranks", had, len(owners))
	}
	return a, nil
}

// planParts plans which parts are sent, in an order that is the same on all ranks. has are the ranks with a copy, by name.
func (a *agreement) planParts(all []report, has map[string][]int) {
	nodes := make([]string, len(all))
	for rank, r := range all {
		nodes[rank] = r.Node
	}
	partners := partnersOf(nodes)
	for _, name := range a.parts() {
		owner, holders := a.owners[name], has[name]
		if len(holders) > 0 && !slices.Contains(holders, owner) {
			a.toOwners = append(a.toOwners, move{name, holders[0], owner})
		}
		if to := partners[owner]; to != owner {
			m := move{name, owner, to}
			a.eachCommit = append(a.eachCommit, m)
			if !slices.Contains(holders, to) {
				a.toPartners = append(a.toPartners, m)
			}
		}
	}
}

// parts are the names of all parts, in order.
func (a *agreement) parts() []string { return slices.Sorted(maps.Keys(a.owners)) }

// argument returns the [comm.ArgumentError] of a program that is wrong in itself.
func argument(format string, args ...any) error {
	return &comm.ArgumentError{Op: "elastic.Run", Err: fmt.Errorf(format, args...)}
}

package elastic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

// A State is a set of variables, with a copy of them: the last commit. Values and Slices have the same contents on all ranks, and Parts are this
// rank's alone. Its methods may be called from several goroutines, but while one runs, no other goroutine may use the variables.
type State struct {
	items []Item // in order of their names

	mu          sync.Mutex
	phase       phase
	world       *comm.Group             // of the function of Run, while that runs
	checkpoints *checkpoint.Checkpoints // while syncing, Run uses them without the mutex
	commits     uint64                  // the number of the last commit
}

// A phase says who may change the variables of a State.
type phase int

const (
	idle    phase = iota // the program
	working              // the function of Run
	syncing              // Run
)

// NewState returns a State of these items. It returns a [comm.ArgumentError] if one has no name, or that of another, or is a Value whose pointer is
// nil.
func NewState(items ...Item) (*State, error) {
	names := make(map[string]bool)
	for n, i := range items {
		var err error
		switch {
		case i.name == "":
			err = fmt.Errorf("item %d of %d has no name", n+1, len(items))
		case names[i.name]:
			err = fmt.Errorf("two items have the name %q", i.name)
		case i.isValue() && i.value.IsNil():
			err = fmt.Errorf("the pointer of %v is nil", i)
		}
		if err != nil {
			return nil, &comm.ArgumentError{Op: "elastic.NewState", Err: err}
		}
		names[i.name] = true
	}
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.name, b.name) })
	s := &State{items: items}
	return s, s.forget()
}

// forget forgets all commits.
func (s *State) forget() (err error) {
	s.commits = 0
	s.checkpoints, err = checkpoint.New(slices.Collect(maps.Keys(s.parts()))...)
	return err
}

// shared are the items that all ranks have.
func (s *State) shared() (items []Item) {
	for _, i := range s.items {
		if !i.part {
			items = append(items, i)
		}
	}
	return items
}

// parts are the items that only this rank has, by name: one each.
func (s *State) parts() map[string][]Item {
	parts := make(map[string][]Item)
	for _, i := range s.items {
		if i.part {
			parts[i.name] = []Item{i}
		}
	}
	return parts
}

// Commit makes the present contents of the variables the last commit. All ranks call it at the same point of the program. Without Parts it is
// local: it waits for no other rank, and sends nothing. With Parts, they are sent after Commit has returned, and the next Commit waits until they
// have arrived.
//
// Inside the function of [Run], Commit fails if the world has: then the variables may be those of a step that was not
// completed. It fails as well after the function has returned. A [comm.ArgumentError] says that a value cannot be
// encoded, or that a [comm.Work] has not ended, which might write to a variable. If Commit fails, the last commit
// stays.
func (s *State) Commit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == syncing {
		return errors.New("elastic: Commit: the function of Run has returned")
	}
	if s.world != nil && s.world.Err() != nil {
		return fmt.Errorf("elastic: Commit: %w", s.world.Err())
	}
	if err := s.checkWorks("elastic.Commit"); err != nil {
		return err
	}
	if err := s.take(true); err != nil {
		return err
	}
	err := s.checkpoints.Commit()
	s.commits = s.checkpoints.Number()
	return err
}

// Restore sets the variables to the last commit. It is local. Before Run calls the function, it does the same.
func (s *State) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == syncing:
		return errors.New("elastic: Restore: the function of Run has returned")
	case s.commits == 0:
		return &comm.ArgumentError{Op: "elastic.Restore", Err: errors.New("there is no commit")}
	}
	if err := s.checkWorks("elastic.Restore"); err != nil {
		return err
	}
	return s.restore()
}

// checkWorks returns an error if an operation of an I-form is under way. Whether it uses a variable does not matter:
// nobody can tell which memory belongs to a value.
func (s *State) checkWorks(op string) error {
	if names := s.world.Pending(); len(names) > 0 {
		return &comm.ArgumentError{Op: op, Err: fmt.Errorf("%s is under way: wait for its Work first", names[0])}
	}
	return nil
}

// Commits returns the number of the last commit, or 0 if there is none. Run makes the first, so the function begins with 1.
func (s *State) Commits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// take copies the variables for the next commit: the parts, and what is shared if that is wanted. If a value cannot be encoded, it changes nothing.
func (s *State) take(shared bool) error {
	taken := s.parts()
	if shared {
		taken[checkpoint.Shared] = s.shared()
	}
	all := make(map[string][]checkpoint.Entry)
	for name, items := range taken {
		for _, i := range items {
			e, err := i.entry()
			if err != nil {
				return err
			}
			all[name] = append(all[name], e)
		}
	}
	for name, items := range taken {
		entries, err := s.checkpoints.Take(context.Background(), name, all[name])
		if err != nil {
			return fmt.Errorf("elastic: Commit: %w", err)
		}
		for n, i := range items {
			copy(entries[n].Bytes, i.bytes)
		}
	}
	return nil
}

// restore sets the variables to the last commit. If a value cannot be decoded, it changes nothing.
func (s *State) restore() error {
	type change struct {
		item  Item
		entry checkpoint.Entry
		value reflect.Value // that the entry has; none of a slice
	}
	var changes []change
	all := s.parts()
	all[checkpoint.Shared] = s.shared()
	for name, items := range all {
		entries := s.checkpoints.Entries(name)
		if len(entries) != len(items) {
			return &comm.ArgumentError{Op: "elastic.Restore", Err: fmt.Errorf("the commit has %d variables: want %d", len(entries), len(items))}
		}
		for n, i := range items {
			value, err := i.decode(entries[n])
			if err != nil {
				return err
			}
			changes = append(changes, change{i, entries[n], value})
		}
	}
	for _, c := range changes {
		if copy(c.item.bytes, c.entry.Bytes); c.item.isValue() {
			c.item.value.Elem().Set(c.value.Elem())
		}
	}
	return nil
}

// begin begins a Run. There is no commit until the ranks have agreed on one. The memory of the State is populated until the function that begin
// returns is called.
func (s *State) begin() (endPopulate func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return nil, &comm.ArgumentError{Op: "elastic.Run", Err: errors.New("another Run has this State")}
	}
	if err := s.forget(); err != nil {
		return nil, err
	}
	var own [][]byte
	sizes := make(map[string][]int)
	for _, i := range s.items { // it is better to learn now what cannot be decoded than when a rank has died
		e, err := i.entry()
		if err == nil {
			_, err = i.decode(e)
		}
		if err != nil {
			return nil, err
		}
		own = append(own, i.bytes)
		name := checkpoint.Shared
		if i.part {
			name = i.name
		}
		sizes[name] = append(sizes[name], len(i.bytes))
	}
	var reserved [][]byte
	for name, sizes := range sizes {
		memory, err := s.checkpoints.Reserve(name, sizes...)
		if err != nil {
			return nil, fmt.Errorf("elastic: %w", err)
		}
		reserved = append(reserved, memory)
	}
	s.phase = syncing
	return populate(append(reserved, own...)), nil
}

// sync sets the variables of all ranks of world to the newest commit that is whole, or before the first one to those of rank 0, and Parts to their
// own. run says which call of Run this is in the program, from 1.
func (s *State) sync(ctx context.Context, world *comm.Group, round uint64, run int) error {
	layout := checkpoint.Layout{Run: run}
	for _, i := range s.shared() {
		layout.Fields = append(layout.Fields, checkpoint.Field{Name: i.name, Type: i.typ, Slice: !i.isValue()})
	}
	if !s.checkpoints.Begun() {
		if err := s.take(world.Rank() == 0); err != nil {
			return err
		}
	}
	if err := s.checkpoints.Sync(ctx, world, round, layout); err != nil {
		return err
	}
	s.mu.Lock()
	s.commits = s.checkpoints.Number()
	s.mu.Unlock()
	err := s.restore()
	if err != nil {
		world.Abort(err)
	}
	return err
}

// await waits until the parts of the last commit have arrived.
func (s *State) await() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkpoints.Await(context.Background())
}

// end ends a Run, whose world is closed. The variables are the program's again.
func (s *State) end() {
	_ = s.await()
	s.enter(idle, nil)
}

// enter says who may change the variables from now on: the function of Run in world, or somebody else.
func (s *State) enter(p phase, world *comm.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.world = p, world
}

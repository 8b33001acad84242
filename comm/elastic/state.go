package elastic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gorun/gorun/comm"
)

// A State is a set of variables that have the same contents on all ranks, with a copy of them: the last commit. Its methods may be called
// from several goroutines, but while one runs, no other goroutine may use the variables.
type State struct {
	items []Item

	mu      sync.Mutex
	phase   phase
	world   *comm.Group // of the function of Run, while that runs
	last    commitID    // of the last commit
	commit  snapshot    // its contents
	standby []byte      // memory for the packed part of the next commit

	partial bool // as in holding
}

// A phase says who may change the variables of a State.
type phase int

const (
	idle    phase = iota // the program
	working              // the function of Run
	syncing              // Run
)

// NewState returns a State of these items. It returns a [comm.ArgumentError] if one has no name, or that of another.
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
	return &State{items: items}, nil
}

// Commit makes the present contents of the variables the last commit. All ranks call it at the same point of the program. It is local: it
// waits for no other rank, and sends nothing.
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
	if err := s.take(); err != nil {
		return err
	}
	s.last.number++
	return nil
}

// Restore sets the variables to the last commit. It is local. Before Run calls the function, it does the same.
func (s *State) Restore() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.phase == syncing:
		return errors.New("elastic: Restore: the function of Run has returned")
	case s.last == commitID{}:
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
	return s.last.number
}

// take copies the variables to the commit. If a value cannot be encoded, it changes nothing.
func (s *State) take() error {
	packed, err := pack(s.standby[:0], s.items)
	if err != nil {
		return err
	}
	s.commit.packed, s.standby = packed, s.commit.packed
	s.commit.alloc(s.items)
	copyAll(s.commit.large, largeSlices(s.items))
	return nil
}

// restore sets the variables to the commit. If a value cannot be decoded, it changes nothing.
func (s *State) restore() error {
	set, err := unpack(s.commit.packed, s.items)
	if err != nil {
		return err
	}
	set()
	copyAll(largeSlices(s.items), s.commit.large)
	return nil
}

// begin begins a Run. There is no commit until the ranks have agreed on one.
func (s *State) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != idle {
		return &comm.ArgumentError{Op: "elastic.Run", Err: errors.New("another Run has this State")}
	}
	packed, err := pack(nil, s.items)
	if err == nil {
		_, err = unpack(packed, s.items) // it is better to learn now what cannot be decoded than when a rank has died
	}
	if err != nil {
		return err
	}
	s.commit.packed = packed
	s.commit.alloc(s.items)
	s.phase, s.last, s.partial = syncing, commitID{}, false
	return nil
}

// setLast makes the copy commit id, on which the ranks have agreed.
func (s *State) setLast(id commitID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = id
}

// enter says who may change the variables from now on: the function of Run in world, or somebody else.
func (s *State) enter(p phase, world *comm.Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase, s.world = p, world
}

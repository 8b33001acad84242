package main

// #include "call.h"
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/checkpoint"
)

// A state is what gorun_state is a handle of.
type state struct {
	mu          sync.Mutex
	checkpoints *checkpoint.Checkpoints
	pinned      runtime.Pinner // the names and nodes that C has addresses of, until the next gorun_state_entries
}

var states handles[*state]

// withState calls f with the state that n is a handle of. Meanwhile it calls the function of gorun_set_poll, which may end f's context.
func withState(n C.gorun_state, f func(ctx context.Context, s *state) error) C.int {
	s, ok := states.get(uint64(n))
	if !ok {
		return fail(states.missing(uint64(n), "State", "state", comm.ErrClosed))
	}
	return fail(polled(0, func(ctx context.Context) (err error) {
		defer caught(&err)
		s.mu.Lock()
		defer s.mu.Unlock()
		return f(ctx, s)
	}))
}

//export goStateCreate
func goStateCreate(parts **C.char, n C.int, to *C.gorun_state) (code C.int) {
	defer checked("State", &code)()
	*to = 0
	var names []string
	for _, name := range unsafe.Slice(parts, max(n, 0)) {
		names = append(names, C.GoString(name))
	}
	checkpoints, err := checkpoint.New(names...)
	if err != nil {
		return fail(&comm.ArgumentError{Op: "State", Err: err})
	}
	*to = C.gorun_state(states.add(&state{checkpoints: checkpoints}))
	return C.GORUN_SUCCESS
}

//export goStateFree
func goStateFree(n C.gorun_state) C.int {
	s, ok := states.remove(uint64(n))
	if !ok {
		return fail(states.missing(uint64(n), "State", "state", comm.ErrClosed))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned.Unpin()
	go runtime.GC() // the memory of commits is not Go's, so it does not make this happen
	return C.GORUN_SUCCESS
}

//export goStateTake
func goStateTake(n C.gorun_state, part *C.char, entries *C.gorun_entry, count C.int) (code C.int) {
	defer checked("State", &code)()
	list := unsafe.Slice(entries, max(count, 0))
	return withState(n, func(ctx context.Context, s *state) error {
		var taken []checkpoint.Entry
		for _, e := range list {
			if e.tree == nil && e.tree_length > 0 || !fits[byte](unsafe.Pointer(e.tree), int(e.tree_length)) || int64(e.size) < 0 {
				return refuse("State", "%s is longer than there can be", C.GoString(e.name))
			}
			tree := slice[byte](unsafe.Pointer(e.tree), int(e.tree_length))
			taken = append(taken, checkpoint.Entry{Name: C.GoString(e.name), Tree: tree, Size: int(e.size)})
		}
		taken, err := s.checkpoints.Take(ctx, C.GoString(part), taken)
		for i, e := range taken {
			list[i].memory = unsafe.Pointer(unsafe.SliceData(e.Bytes))
		}
		return err
	})
}

//export goStateCommit
func goStateCommit(n C.gorun_state) C.int {
	return withState(n, func(_ context.Context, s *state) error {
		return s.checkpoints.Commit()
	})
}

//export goStateWait
func goStateWait(n C.gorun_state) C.int {
	return withState(n, func(ctx context.Context, s *state) error { return s.checkpoints.Await(ctx) })
}

//export goStateSync
func goStateSync(n C.gorun_state, world C.gorun_comm, run C.int, fields *C.gorun_field, count C.int) (code C.int) {
	defer checked("State", &code)()
	g, err := groupOf(world, "State")
	if err != nil {
		return fail(err)
	}
	layout := checkpoint.Layout{Run: int(run)}
	for _, f := range unsafe.Slice(fields, max(count, 0)) {
		layout.Fields = append(layout.Fields, checkpoint.Field{Name: C.GoString(f.name), Type: C.GoString(f._type), Slice: f.is_array != 0})
	}
	return withState(n, func(ctx context.Context, s *state) error {
		return s.checkpoints.Sync(ctx, g, checkpoint.Round(), layout)
	})
}

//export goStateEntries
func goStateEntries(n C.gorun_state, part *C.char, entries *C.gorun_entry, room C.int, count *C.int) (code C.int) {
	defer checked("State", &code)()
	*count = 0
	list := unsafe.Slice(entries, max(room, 0))
	return withState(n, func(_ context.Context, s *state) error {
		got := s.checkpoints.Entries(C.GoString(part))
		*count = C.int(len(got))
		s.pinned.Unpin()
		for i, e := range got[:min(len(got), len(list))] {
			name := append([]byte(e.Name), 0)
			s.pinned.Pin(unsafe.SliceData(name))
			if len(e.Tree) > 0 {
				s.pinned.Pin(unsafe.SliceData(e.Tree))
			}
			list[i] = C.gorun_entry{
				name: (*C.char)(unsafe.Pointer(unsafe.SliceData(name))),
				tree: unsafe.Pointer(unsafe.SliceData(e.Tree)), tree_length: C.size_t(len(e.Tree)),
				memory: unsafe.Pointer(unsafe.SliceData(e.Bytes)), size: C.size_t(e.Size),
			}
		}
		return nil
	})
}

package main

/*
#include <stdlib.h>
#include "call.h"

extern char **environ;
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/env/proc"
)

func init() {
	proc.KeepDescriptors(unsafe.Slice((*proc.Descriptor)(unsafe.Pointer(&C.owned[0])), C.MOST_DESCRIPTORS))
}

var version = sync.OnceValue(func() *C.char {
	if info, ok := debug.ReadBuildInfo(); ok {
		return C.CString(info.Main.Version)
	}
	return C.CString("")
})

//export goVersion
func goVersion() *C.char { return version() }

var bindings = map[string]comm.Binding{"auto": comm.BindAuto, "call": comm.BindCall, "none": comm.BindNone}

//export goInit
func goInit(o *C.gorun_options, open C.gorun_open_function, opaque unsafe.Pointer, world *C.gorun_comm) (code C.int) {
	defer checked("Init", &code)()
	*world = 0
	takeEnvironment()
	opts := []comm.Option{comm.WithFlightOnQuit(false), comm.WithBufferCheck()}
	if o.init_method != nil {
		opts = append(opts, comm.WithInitMethod(C.GoString(o.init_method)))
	}
	if o.size != 0 {
		opts = append(opts, comm.WithRank(int(o.rank), int(o.size)))
	} else if o.rank != 0 {
		return fail(refuse("Init", "rank %d, and no size: want both, or neither", int(o.rank)))
	}
	if o.store != 0 {
		s, ok := stores.get(uint64(o.store))
		if !ok {
			return fail(noStore(o.store, "Init"))
		}
		opts = append(opts, comm.WithStore(s))
	}
	if open != nil {
		opts = append(opts, comm.WithRoundStore(opener(open, opaque)))
	}
	if o.transport != nil {
		opts = append(opts, comm.WithTransport(comm.Transport(C.GoString(o.transport))))
	}
	if o.binding != nil {
		b, ok := bindings[C.GoString(o.binding)]
		if !ok {
			return fail(refuse("Init", "binding %q: want auto, call or none", C.GoString(o.binding)))
		}
		opts = append(opts, comm.WithBinding(b))
	}
	if o.token != nil {
		opts = append(opts, comm.WithToken(C.GoString(o.token)))
	}
	if o.timeout != 0 {
		opts = append(opts, comm.WithTimeout(inTime(o.timeout)))
	}
	if o.quiet != 0 {
		opts = append(opts, comm.WithLogger(slog.New(slog.DiscardHandler)))
	}
	if C.has_poll() != 0 { // which slows some calls down
		opts = append(opts, comm.WithPoll(func() error {
			if C.poll_now() != 0 {
				return errInterrupted
			}
			return nil
		}))
	}
	g, err := comm.Init(context.Background(), opts...)
	return made(g, err, world)
}

// takeEnvironment copies the environment of C to Go, which knows only that with which the process began.
func takeEnvironment() {
	now := make(map[string]bool)
	for _, kv := range unsafe.Slice(C.environ, lengthOf(C.environ)) {
		name, value, _ := strings.Cut(C.GoString(kv), "=")
		now[name] = true
		if had, ok := os.LookupEnv(name); !ok || had != value {
			_ = os.Setenv(name, value) // fails for no name that is there
		}
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !now[name] {
			_ = os.Unsetenv(name)
		}
	}
}

// lengthOf returns how many pointers come before the one that is nil.
func lengthOf(list **C.char) (n int) {
	for list != nil && *(**C.char)(unsafe.Add(unsafe.Pointer(list), n*int(unsafe.Sizeof(*list)))) != nil {
		n++
	}
	return n
}

// made gives C a handle of g, unless there is none.
func made(g *comm.Group, err error, to *C.gorun_comm) C.int {
	if g != nil && err == nil {
		*to = C.gorun_comm(groups.add(g))
	}
	return fail(err)
}

//export goRejoin
func goRejoin(world *C.gorun_comm) (code C.int) {
	defer checked("Rejoin", &code)()
	*world = 0
	g, err := comm.Rejoin(context.Background())
	forgetClosed()
	return made(g, err, world)
}

//export goClose
func goClose(n C.gorun_comm) C.int {
	return withGroup(n, "Close", func(g *comm.Group) error {
		err := g.Close()
		forgetClosed()
		return err
	})
}

// forgetClosed ends the handles of groups that have been closed: that of a world closes others.
func forgetClosed() {
	groups.removeFunc(func(g *comm.Group) bool { return errors.Is(g.Err(), comm.ErrClosed) })
}

//export goAbort
func goAbort(n C.gorun_comm, reason *C.char) (code C.int) {
	defer checked("Abort", &code)()
	return withGroup(n, "Abort", func(g *comm.Group) error {
		g.Abort(errorText(C.GoString(reason)))
		return nil
	})
}

type errorText string

func (e errorText) Error() string { return string(e) }

// withGroup calls f with the group that n is a handle of.
func withGroup(n C.gorun_comm, op string, f func(*comm.Group) error) C.int {
	g, err := groupOf(n, op)
	if err != nil {
		return fail(err)
	}
	return fail(f(g))
}

//export goRank
func goRank(n C.gorun_comm, rank, size, ranks *C.int) (code C.int) {
	defer checked("Rank", &code)()
	return withGroup(n, "Rank", func(g *comm.Group) error {
		switch {
		case rank != nil:
			*rank = C.int(g.Rank())
		case size != nil:
			*size = C.int(g.Size())
		default:
			for i, r := range g.Ranks() {
				unsafe.Slice(ranks, g.Size())[i] = C.int(r)
			}
		}
		return nil
	})
}

//export goCreate
func goCreate(parent C.gorun_comm, ranks *C.int, n C.int, name *C.char, to *C.gorun_comm) (code C.int) {
	defer checked("NewGroup", &code)()
	*to = 0
	return withGroup(parent, "NewGroup", func(g *comm.Group) error {
		members := make([]int, max(n, 0))
		for i := range members {
			members[i] = int(unsafe.Slice(ranks, n)[i])
		}
		var part *comm.Group
		var err error
		if name == nil {
			part, err = comm.NewGroup(context.Background(), g, members)
		} else {
			part, err = comm.NewGroupOf(context.Background(), g, members, C.GoString(name))
		}
		if part != nil && err == nil {
			*to = C.gorun_comm(groups.add(part))
		}
		return err
	})
}

//export goSplit
func goSplit(parent C.gorun_comm, color, key C.int, to *C.gorun_comm) (code C.int) {
	defer checked("Split", &code)()
	*to = 0
	return withGroup(parent, "Split", func(g *comm.Group) error {
		part, err := comm.Split(context.Background(), g, int(color), int(key))
		if part != nil && err == nil {
			*to = C.gorun_comm(groups.add(part))
		}
		return err
	})
}

//export goAlloc
func goAlloc(n C.gorun_comm, size C.size_t, memory *unsafe.Pointer) (code C.int) {
	defer checked("Alloc", &code)()
	*memory = nil
	return withGroup(n, "Alloc", func(g *comm.Group) error {
		buf, err := comm.Alloc[byte](g, int(size))
		if len(buf) > 0 {
			*memory = unsafe.Pointer(unsafe.SliceData(buf))
		}
		return err
	})
}

//export goFree
func goFree(memory unsafe.Pointer) C.int {
	return fail(comm.MemFree(unsafe.Slice((*byte)(memory), 1)))
}

//export goFlight
func goFlight(text *C.char, room C.size_t, length *C.size_t) (code C.int) {
	defer checked("Flight", &code)()
	var b bytes.Buffer
	err := comm.WriteFlight(&b)
	export(b.String(), text, room, length)
	return fail(err)
}

//export goExplain
func goExplain(n C.gorun_comm, op *C.char, size C.size_t, text *C.char, room C.size_t, length *C.size_t) (code C.int) {
	defer checked("Explain", &code)()
	return withGroup(n, "Explain", func(g *comm.Group) error {
		export(g.Explain(C.GoString(op), int(size)), text, room, length)
		return nil
	})
}

// export copies as much of s as there is room for, and a zero byte, and says how much room there should be.
func export(s string, text *C.char, room C.size_t, length *C.size_t) {
	*length = C.size_t(len(s) + 1)
	if text != nil && room > 0 {
		copyText(unsafe.Slice(text, min(uint64(room), uint64(len(s)+1))), s)
	}
}

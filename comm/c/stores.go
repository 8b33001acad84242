package main

/*
#include "call.h"

static inline int call_open(gorun_open_function open, void *context, gorun_store *store) { return open(context, store); }
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/gorun/gorun/comm"
)

var stores handles[comm.Store]

// opener returns a function that makes open open a store, and takes it from C.
func opener(open C.gorun_open_function, opaque unsafe.Pointer) func(context.Context) (comm.Store, error) {
	return func(context.Context) (comm.Store, error) {
		var n C.gorun_store
		if code := C.call_open(open, opaque, &n); code != 0 {
			return nil, &functionError{what: "gorun_init_round_store", code: int(code)}
		}
		s, ok := stores.remove(uint64(n))
		if !ok {
			return nil, noStore(n, "Init")
		}
		return s, nil
	}
}

//export goStoreTCP
func goStoreTCP(address, token *C.char, timeout C.double, to *C.gorun_store) (code C.int) {
	defer checked("Store", &code)()
	*to = 0
	var s comm.Store
	err := polled(timeout, func(ctx context.Context) (err error) {
		s, err = comm.NewTCPStore(ctx, C.GoString(address), []byte(C.GoString(token)))
		return err
	})
	if err != nil {
		return fail(err)
	}
	*to = C.gorun_store(stores.add(s))
	return C.GORUN_SUCCESS
}

//export goStoreFile
func goStoreFile(path *C.char, to *C.gorun_store) (code C.int) {
	defer checked("Store", &code)()
	*to = 0
	s, err := comm.NewFileStore(C.GoString(path))
	if err != nil {
		return fail(err)
	}
	*to = C.gorun_store(stores.add(s))
	return C.GORUN_SUCCESS
}

//export goStoreClose
func goStoreClose(n C.gorun_store) C.int {
	s, ok := stores.remove(uint64(n))
	if !ok {
		return fail(noStore(n, "Store"))
	}
	return fail(s.Close())
}

func noStore(n C.gorun_store, op string) error {
	return stores.missing(uint64(n), op, "store", comm.ErrStoreClosed)
}

// withStore calls f with the store that n is a handle of. ctx ends after so many seconds; 0 means never.
func withStore(n C.gorun_store, timeout C.double, f func(ctx context.Context, s comm.Store) error) C.int {
	s, ok := stores.get(uint64(n))
	if !ok {
		return fail(noStore(n, "Store"))
	}
	return fail(polled(timeout, func(ctx context.Context) error { return f(ctx, s) }))
}

// pollPause is the time between two calls of the function of gorun_set_poll.
const pollPause = 100 * time.Millisecond

// polled calls f, and meanwhile the function of gorun_set_poll, which may end ctx. So does the timeout.
func polled(timeout C.double, f func(ctx context.Context) error) error {
	ctx, cancel := within(timeout)
	defer cancel()
	if C.polls_here() == 0 {
		return f(ctx)
	}
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if C.poll_now() != 0 {
				cancel()
				<-ended // f uses memory of the caller
				return errInterrupted
			}
		}
	}
}

//export goStoreSet
func goStoreSet(n C.gorun_store, key *C.char, value unsafe.Pointer, length C.size_t) (code C.int) {
	defer checked("Store", &code)()
	return withStore(n, 0, func(ctx context.Context, s comm.Store) error {
		if value == nil && length > 0 || !fits[byte](value, int(length)) {
			return refuse("Store", "a value of %d bytes is NULL, or longer than there can be", uint64(length))
		}
		return s.Set(ctx, C.GoString(key), slice[byte](value, int(length)))
	})
}

//export goStoreGet
func goStoreGet(n C.gorun_store, key *C.char, timeout C.double, value unsafe.Pointer, room C.size_t, length *C.size_t) (code C.int) {
	defer checked("Store", &code)()
	*length = 0
	return withStore(n, timeout, func(ctx context.Context, s comm.Store) error {
		got, err := s.Get(ctx, C.GoString(key))
		*length = C.size_t(len(got))
		if value != nil {
			copy(unsafe.Slice((*byte)(value), min(uint64(room), uint64(len(got)))), got)
		}
		return err
	})
}

//export goStoreAdd
func goStoreAdd(n C.gorun_store, key *C.char, amount C.int64_t, sum *C.int64_t) (code C.int) {
	defer checked("Store", &code)()
	return withStore(n, 0, func(ctx context.Context, s comm.Store) error {
		total, err := s.Add(ctx, C.GoString(key), int64(amount))
		if sum != nil {
			*sum = C.int64_t(total)
		}
		return err
	})
}

//export goStoreWait
func goStoreWait(n C.gorun_store, keys **C.char, count C.int, timeout C.double) (code C.int) {
	defer checked("Store", &code)()
	return withStore(n, timeout, func(ctx context.Context, s comm.Store) error {
		var all []string
		for _, key := range unsafe.Slice(keys, max(count, 0)) {
			all = append(all, C.GoString(key))
		}
		return s.Wait(ctx, all...)
	})
}

//export goStoreDelete
func goStoreDelete(n C.gorun_store, key *C.char, wasSet *C.int) (code C.int) {
	defer checked("Store", &code)()
	return withStore(n, 0, func(ctx context.Context, s comm.Store) error {
		was, err := s.Delete(ctx, C.GoString(key))
		if wasSet != nil {
			*wasSet = 0
			if was {
				*wasSet = 1
			}
		}
		return err
	})
}

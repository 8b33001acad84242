package hang

// An activity says what a worker does that makes no progress, as far as that tells whether it waits for another one.
type activity int

const (
	waits activity = iota // it waits in the kernel, perhaps for another process
	runs                  // it runs; it may be waiting without sleeping, as NCCL and MPI do
	idles                 // it sleeps, is stopped, or is held up by a file: it does not wait for another process
)

// A place is where a worker is.
type place struct {
	stack   string // the program's functions, the innermost first; empty: not known
	waiting bool   // the innermost is a call that waits for other ranks
	does    activity
}

// oddOneOut returns the index of the worker that is elsewhere than all others, which wait for it; -1: there is no such worker. certain says
// that the others wait for a worker, and that this one does not. Otherwise the others, at least two, are all at the same place.
func oddOneOut(places []place) (index int, certain bool) {
	idle, index := 0, -1
	for i, p := range places {
		if p.does == idles {
			idle, index = idle+1, i
		}
	}
	switch {
	case idle == 1 && len(places) > 1:
		return index, true
	case idle > 0 && idle < len(places):
		return -1, false
	}
	if at := aloneOutside(places); at >= 0 {
		return at, true
	}
	at := stackOf
	for _, p := range places {
		if p.stack == "" { // then the stacks of the others say nothing
			at = func(p place) any { return p.does }
		}
	}
	return loneIndex(places, at), false
}

// aloneOutside returns the index of the only worker whose stack is known and is in no call that waits for other ranks, if all others wait in
// one; -1: there is none.
func aloneOutside(places []place) int {
	alone := -1
	for i, p := range places {
		switch {
		case p.waiting && p.does == waits:
		case p.waiting || p.stack == "" || alone >= 0:
			return -1
		default:
			alone = i
		}
	}
	if len(places) < 2 {
		return -1
	}
	return alone
}

func stackOf(p place) any { return p.stack }

// loneIndex returns the index of the only place that at tells from all others, of which there are at least two; -1: there is none.
func loneIndex(places []place, at func(place) any) int {
	if len(places) < 3 {
		return -1
	}
	counts := make(map[any]int)
	for _, p := range places {
		counts[at(p)]++
	}
	for i, p := range places {
		if len(counts) == 2 && counts[at(p)] == 1 {
			return i
		}
	}
	return -1
}

package elastic

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/gorun/gorun/comm"
)

// A layout is what has to be the same on all ranks for their states to fit. It travels as CBOR.
type layout struct {
	Run   int // which call of Run this is in the program, from 1
	Items []itemLayout
}

type itemLayout struct{ Name, Type string }

// layoutOf is the layout of items, which are in order of their names.
func layoutOf(run int, items []Item) layout {
	l := layout{Run: run}
	for _, i := range items {
		l.Items = append(l.Items, itemLayout{i.name, i.typ})
	}
	return l
}

// checksum is the same for equal layouts.
func (l layout) checksum() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %q", l.Run, l.Items)
	return h.Sum64()
}

// difference says what rank other has that differs from what rank first has. It is empty if nothing does.
func difference(ls []layout, first, other int) string {
	want, got := ls[first], ls[other]
	if want.Run != got.Run {
		return fmt.Sprintf("rank %d is in call %d of elastic.Run, and rank %d in call %d", first, want.Run, other, got.Run)
	}
	types := make(map[string]string)
	for _, i := range got.Items {
		types[i.Name] = i.Type
	}
	for _, i := range want.Items {
		typ, ok := types[i.Name]
		switch {
		case !ok:
			return fmt.Sprintf("rank %d has %q (%s) in its State, and rank %d has not", first, i.Name, i.Type, other)
		case typ != i.Type:
			return fmt.Sprintf("%q is %s on rank %d, and %s on rank %d", i.Name, i.Type, first, typ, other)
		}
		delete(types, i.Name)
	}
	for _, i := range got.Items {
		if _, more := types[i.Name]; more {
			return fmt.Sprintf("rank %d has %q (%s) in its State, and rank %d has not", other, i.Name, i.Type, first)
		}
	}
	return ""
}

// layoutError returns the error of rank me of a world in which not all layouts are as that of rank first. A rank that differs gets an
// ArgumentError: another attempt of its program would differ as well. For the others, that rank has failed, and they wait for its end.
func layoutError(ls []layout, first, me int) error {
	if text := difference(ls, first, me); text != "" {
		return &comm.ArgumentError{Op: "elastic.Run", Err: errors.New(text)}
	}
	for r := range ls {
		if text := difference(ls, first, r); text != "" {
			return &comm.PeerError{Rank: r, Op: "elastic.Run", Err: errors.New(text), Finder: me}
		}
	}
	return errors.New("elastic: layouts of equal contents have different checksums")
}

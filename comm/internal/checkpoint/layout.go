package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/gorun/gorun/comm"
)

// A Layout is what has to be the same on all ranks for their states to fit.
type Layout struct {
	Run    int // which call of Run this is in the program, from 1
	Fields []Field
}

// A Field is a variable that all ranks have. Fields are in order of their names.
type Field struct {
	Name, Type string
	Slice      bool // it is a slice or an array. Any other variable of the type AnyValue fits every value.
}

// AnyValue is the type of values in languages that do not say more.
const AnyValue = "a value"

func (f Field) fits(other Field) bool {
	return f.Slice == other.Slice && (f.Type == other.Type || !f.Slice && (f.Type == AnyValue || other.Type == AnyValue))
}

// checksum is the same for equal layouts.
func (l Layout) checksum() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", l)
	return h.Sum64()
}

// difference says what rank other has that does not fit what rank first has. It is empty if all fits.
func difference(ls []Layout, first, other int) string {
	want, got := ls[first], ls[other]
	if want.Run != got.Run {
		return fmt.Sprintf("rank %d is in call %d of elastic.Run, and rank %d in call %d", first, want.Run, other, got.Run)
	}
	fields := make(map[string]Field)
	for _, f := range got.Fields {
		fields[f.Name] = f
	}
	for _, f := range want.Fields {
		there, ok := fields[f.Name]
		switch {
		case !ok:
			return fmt.Sprintf("rank %d has %q (%s) in its State, and rank %d has not", first, f.Name, f.Type, other)
		case !f.fits(there):
			return fmt.Sprintf("%q is %s on rank %d, and %s on rank %d", f.Name, f.Type, first, there.Type, other)
		}
		delete(fields, f.Name)
	}
	for _, f := range got.Fields {
		if _, more := fields[f.Name]; more {
			return fmt.Sprintf("rank %d has %q (%s) in its State, and rank %d has not", other, f.Name, f.Type, first)
		}
	}
	return ""
}

// compareLayouts returns an error unless the layouts of all ranks fit that of rank first. A rank that differs gets an ArgumentError: another
// attempt of its program would differ as well. For the others, it has aborted the world.
func compareLayouts(ctx context.Context, world *comm.Group, own Layout, all []report, first int) error {
	if !slices.ContainsFunc(all, func(r report) bool { return r.Layout != all[first].Layout }) {
		return nil
	}
	ls, err := comm.AllGatherObject(ctx, world, own)
	if err != nil {
		return err
	}
	if text := difference(ls, first, world.Rank()); text != "" {
		world.Abort(errors.New(text))
		return argument("%s", text)
	}
	return comm.Barrier(ctx, world)
}

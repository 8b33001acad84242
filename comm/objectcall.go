package comm

import (
	"context"
	"errors"
	"fmt"

	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	// sizeBytes is what a size takes in a message.
	sizeBytes = 8
	// maxReason is the longest reason, in bytes, that a rank gives for an object that it cannot encode.
	maxReason = 1 << 10
)

// objects is a collective that moves objects: first their sizes, then the objects. A rank that cannot encode its object
// takes part all the same, with a negative size, and then the reason is what moves.
type objects struct {
	*collective
	payload []byte // the object that this rank gives, encoded, or the reason; then what it gets
	cause   error  // the reason
	fault   error  // that of whichever rank has one
}

func newObjects(g *Group, kind callKind) *objects {
	o := &objects{collective: new(collective)}
	o.is(g, kind, typeObject, 1)
	o.call.Detail = uint32(o.g.objectLimit)
	return o
}

// give makes b what this rank gives, or err its reason not to.
func (o *objects) give(b []byte, err error) {
	o.payload, o.cause = b, err
	if err != nil {
		reason := []byte(err.Error())
		o.payload = reason[:min(len(reason), maxReason)]
	}
}

// size is what this rank tells the others of its payload.
func (o *objects) size() int64 {
	if o.cause != nil {
		return -int64(len(o.payload))
	}
	return int64(len(o.payload))
}

// excuse says whether size, which rank has given, means that there is no object. Then t tells all ranks why, and all of them
// come to carry it out: they have seen the size, and have the same limit.
func (o *objects) excuse(rank int, size int64) (t task, none bool) {
	if size > int64(o.g.objectLimit) || size < -maxReason { // it must have known
		o.fault = o.about(rank, fmt.Errorf("is said to take %d bytes: the limit is %d", size, o.g.objectLimit))
		return task{}, true
	}
	if size >= 0 {
		return task{}, false
	}
	reason, cause := o.payload, o.cause
	if rank != o.g.rank {
		reason, cause = make([]byte, -size), nil
	}
	t = inPlace(plan.BinomialBroadcast(o.g.rank, o.g.Size(), len(reason), rank), reason)
	t.end = func(*collective) {
		if cause == nil {
			cause = errors.New(string(reason))
		}
		o.fault = o.about(rank, cause)
	}
	return t, true
}

// run carries o out.
func (o *objects) run(ctx context.Context) error {
	if err := o.collective.run(ctx); err != nil {
		return err
	}
	return o.fault
}

// about is err, if there is one, as an error about the object of rank.
func (o *objects) about(rank int, err error) error {
	if err == nil {
		return nil
	}
	return &ObjectError{Rank: o.g.ranks[rank], Op: callKind(o.call.Op).String(), Seq: o.seq, Err: err}
}

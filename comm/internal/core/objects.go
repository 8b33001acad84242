package core

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/pipeline"
	"github.com/gorun/gorun/comm/internal/plan"
	"github.com/gorun/gorun/comm/internal/reduce"
)

const (
	// sizeBytes is what a size takes in a message.
	sizeBytes = 8
	// maxReason is the longest reason, in bytes, that a rank gives for an object that it cannot encode.
	maxReason = 1 << 10
)

// Objects is a collective that moves encoded objects: first their sizes, then the objects. A rank that cannot encode
// its object takes part as well. It sends a negative size, and then the reason.
type Objects struct {
	Collective
	args    Args
	limit   int    // of an object, in bytes
	payload []byte // this rank's object, encoded, or the reason; then what it receives
	cause   error  // why this rank has no object
	fault   error  // why a rank has no object
}

// NewObjects begins to describe a call of kind on g, in which each rank sends count objects in one message of at most
// limit bytes.
func NewObjects(g *Group, kind call.Kind, count, limit int) *Objects {
	o := &Objects{limit: limit, args: Args{Kind: kind, Type: call.TypeObject, Count: count}}
	o.set(context.Background(), g, &o.args, nil)
	if g == NoGroup {
		o.Refuse(ErrNoGroup)
	}
	return o
}

// Refuse records what is wrong with the call; the first reason stays.
func (o *Objects) Refuse(err error) {
	if o.err == nil {
		o.err = o.g.Refused(badArgument(o.kind(), err))
	}
}

// setRoot makes r the root of the call.
func (o *Objects) setRoot(r int) {
	if o.args.Root = r; !o.g.Has(r) {
		o.Refuse(noRank(o.g, r))
	}
}

// SetPayload sets this rank's object, or err as the reason why it has none.
func (o *Objects) SetPayload(b []byte, err error) {
	o.payload, o.cause = b, err
	if err != nil {
		o.payload = Reason(err)
	}
}

// Reason returns why a rank cannot encode an object, as the other ranks get it.
func Reason(err error) []byte {
	reason := []byte(err.Error())
	return reason[:min(len(reason), maxReason)]
}

// size returns the size that this rank announces for its payload.
func (o *Objects) size() int64 {
	if o.cause != nil {
		return -int64(len(o.payload))
	}
	return int64(len(o.payload))
}

// checkSize reports whether size, which rank has announced, means that there is no object. If rank has a reason for
// that, checkSize broadcasts it. All ranks take part in that, because they have seen the same size and have the same
// limit.
func (o *Objects) checkSize(rank int, size int64) (none bool, err error) {
	if size > int64(o.limit) || size < -maxReason { // rank must have known
		o.fault = o.About(rank, fmt.Errorf("is said to take %d bytes: the limit is %d", size, o.limit))
		return true, nil
	}
	if size >= 0 {
		return false, nil
	}
	reason, cause := o.payload, o.cause
	if rank != o.g.rank {
		reason, cause = make([]byte, -size), nil
	}
	if err := o.broadcastBytes(reason, rank); err != nil {
		return true, err
	}
	if cause == nil {
		cause = errors.New(string(reason))
	}
	o.fault = o.About(rank, cause)
	return true, nil
}

func (o *Objects) run(ctx context.Context, body func() error) error {
	o.set(ctx, o.g, &o.args, nil)
	o.call.SetDetail(uint32(o.limit))
	o.steps = func(*Collective) error { return body() }
	if err := o.Run(ctx); err != nil {
		return err
	}
	return o.fault
}

// About returns err as an error about the object of rank, or nil if err is nil.
func (o *Objects) About(rank int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: BadObject, Rank: o.g.Ranks[rank], Op: o.kind().String(), Seq: o.seq, Err: err}
}

func (o *Objects) broadcastBytes(b []byte, src int) error {
	return o.exchangeInPlace(plan.BinomialBroadcast(o.g.rank, o.g.Size(), len(b), src), b)
}

// Broadcast returns the payload of rank src.
func (o *Objects) Broadcast(ctx context.Context, src int) ([]byte, error) {
	g := o.g
	o.setRoot(src)
	size := []int64{o.size()}
	err := o.run(ctx, func() error {
		if err := o.broadcastBytes(reduce.Bytes(size), src); err != nil {
			return err
		}
		if none, err := o.checkSize(src, size[0]); none {
			return err
		}
		if g.rank != src {
			o.payload = make([]byte, size[0])
		}
		return o.broadcastBytes(o.payload, src)
	})
	return o.payload, err
}

// AllGather returns the payloads of all ranks.
func (o *Objects) AllGather(ctx context.Context) ([][]byte, error) {
	return o.collect(ctx, true, func(all pipeline.Vector) pipeline.Task {
		p, _ := o.g.messages.planner.AllGatherV(nil, o.g.rank, all.Blocks, 1, 0) // blocks of separate objects are never joined
		return pipeline.Task{Plan: p, Src: all, Dst: all}
	})
}

// Gather returns the payloads of all ranks on rank dst, and nil elsewhere.
func (o *Objects) Gather(ctx context.Context, dst int) ([][]byte, error) {
	o.setRoot(dst)
	return o.collect(ctx, o.g.rank == dst, func(all pipeline.Vector) pipeline.Task {
		return pipeline.Task{
			Plan: plan.LinearGather(nil, o.g.rank, dst, len(o.payload), all.Blocks),
			Src:  pipeline.Vector{Buf: o.payload}, Dst: all,
		}
	})
}

// collect carries out o, in which every rank has an object. move returns the task that moves them to the ranks that
// want them.
func (o *Objects) collect(ctx context.Context, wanted bool, move func(all pipeline.Vector) pipeline.Task) ([][]byte, error) {
	g := o.g
	sizes := make([]int64, g.Size())
	var all pipeline.Vector
	err := o.run(ctx, func() error { // the sizes go to all ranks, so that all know if an object is missing
		sizes[g.rank] = o.size()
		if err := o.exchangeInPlace(g.messages.planner.AllGather(nil, g.rank, plan.EqualBlocks(g.Size(), sizeBytes), 1), reduce.Bytes(sizes)); err != nil {
			return err
		}
		for r, n := range sizes {
			if none, err := o.checkSize(r, n); none {
				return err
			}
		}
		if wanted {
			for _, n := range sizes {
				all.Bufs = append(all.Bufs, make([]byte, n))
			}
			all.SetBlocksOfBufs(1)
			copy(all.Bufs[g.rank], o.payload)
		}
		t := move(all)
		return o.exchange(&t)
	})
	if err != nil {
		return nil, err
	}
	return all.Bufs, nil
}

// Scatter returns payload Rank of those that rank src passes. Elsewhere payloads does not matter. cause is why rank src
// has none.
func (o *Objects) Scatter(ctx context.Context, payloads [][]byte, cause error, src int) ([]byte, error) {
	g := o.g
	o.setRoot(src)
	var sizes []int64
	if g.rank == src {
		o.SetPayload(nil, cause)
		sizes = slices.Repeat([]int64{o.size()}, max(len(payloads), g.Size()))
		for r, p := range payloads {
			sizes[r] = int64(len(p))
		}
	}
	size := []int64{0}
	err := o.run(ctx, func() error {
		err := o.exchange(&pipeline.Task{
			Plan: plan.LinearScatter(nil, g.rank, src, sizeBytes, plan.EqualBlocks(g.Size(), sizeBytes)),
			Src:  pipeline.Vector{Buf: reduce.Bytes(sizes)}, Dst: pipeline.Vector{Buf: reduce.Bytes(size)},
		})
		if err != nil {
			return err
		}
		if none, err := o.checkSize(src, size[0]); none {
			return err
		}
		o.payload = make([]byte, size[0])
		v := pipeline.Vector{Bufs: payloads}
		v.SetBlocksOfBufs(1)
		return o.exchange(&pipeline.Task{
			Plan: plan.LinearScatter(nil, g.rank, src, len(o.payload), v.Blocks),
			Src:  v, Dst: pipeline.Vector{Buf: o.payload},
		})
	})
	return o.payload, err
}

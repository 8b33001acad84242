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
	// MaxReason is the longest reason, in bytes, that a rank gives for an object that it cannot encode.
	MaxReason = 1 << 10
)

// Objects is a collective that moves objects, encoded: first their sizes, then the objects. A rank that cannot encode its object
// takes part all the same, with a negative size, and then the reason is what moves.
type Objects struct {
	Collective
	limit   int    // of an object, in bytes
	payload []byte // the object that this rank gives, encoded, or the reason; then what it gets
	cause   error  // the reason
	fault   error  // that of whichever rank has one
}

// NewObjects begins to describe a call of kind on g, of objects of at most limit bytes each.
func NewObjects(g *Group, kind call.Kind, limit int) *Objects {
	o := &Objects{limit: limit}
	o.is(g, kind, call.TypeObject, 1)
	o.call.Detail = uint32(limit)
	return o
}

// Count says how many objects each rank gives in one message.
func (o *Objects) Count(n int) { o.call.Count = uint64(n) }

// Root makes rank the root of the call.
func (o *Objects) Root(rank int) { o.root(rank) }

// Refuse records what is wrong with the call; the first reason stays.
func (o *Objects) Refuse(err error) { o.refuse(err) }

// Give makes b the object that this rank gives, or err the reason why it gives none.
func (o *Objects) Give(b []byte, err error) {
	o.payload, o.cause = b, err
	if err != nil {
		reason := []byte(err.Error())
		o.payload = reason[:min(len(reason), MaxReason)]
	}
}

// size is the number by which this rank announces its payload.
func (o *Objects) size() int64 {
	if o.cause != nil {
		return -int64(len(o.payload))
	}
	return int64(len(o.payload))
}

// checkSize reports whether size, which rank has given, means that there is no object. If rank has a reason for that, it now goes to all
// ranks: all of them are here, as they have seen the same size and have the same limit.
func (o *Objects) checkSize(rank int, size int64) (none bool, err error) {
	if size > int64(o.limit) || size < -MaxReason { // it must have known
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
	t := pipeline.InPlace(plan.BinomialBroadcast(o.g.rank, o.g.Size(), len(reason), rank), reason)
	if err := o.exchange(&t); err != nil {
		return true, err
	}
	if cause == nil {
		cause = errors.New(string(reason))
	}
	o.fault = o.About(rank, cause)
	return true, nil
}

// run carries o out.
func (o *Objects) run(ctx context.Context, body func() error) error {
	o.body = func(*Collective) error { return body() }
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

// Broadcast returns what rank src gives.
func (o *Objects) Broadcast(ctx context.Context, src int) ([]byte, error) {
	g := o.g
	size := []int64{o.size()}
	err := o.run(ctx, func() error {
		t := pipeline.InPlace(plan.BinomialBroadcast(g.rank, g.Size(), sizeBytes, src), reduce.Bytes(size))
		if err := o.exchange(&t); err != nil {
			return err
		}
		if none, err := o.checkSize(src, size[0]); none {
			return err
		}
		if g.rank != src {
			o.payload = make([]byte, size[0])
		}
		t = pipeline.InPlace(plan.BinomialBroadcast(g.rank, g.Size(), len(o.payload), src), o.payload)
		return o.exchange(&t)
	})
	return o.payload, err
}

// AllGather returns what every rank gives.
func (o *Objects) AllGather(ctx context.Context) ([][]byte, error) {
	return o.collect(ctx, true, func(all pipeline.Vector) pipeline.Task {
		return pipeline.Task{Plan: o.g.Choose.AllGatherApart(nil, o.g.rank, all.Blocks, 1), Src: all, Dst: all}
	})
}

// Gather returns what every rank gives on rank dst, and nil elsewhere.
func (o *Objects) Gather(ctx context.Context, dst int) ([][]byte, error) {
	return o.collect(ctx, o.g.rank == dst, func(all pipeline.Vector) pipeline.Task {
		return pipeline.Task{
			Plan: plan.LinearGather(nil, o.g.rank, dst, len(o.payload), all.Blocks),
			Src:  pipeline.Vector{Buf: o.payload}, Dst: all,
		}
	})
}

// collect carries out o, which is about an object of every rank: move is the task of taking them to the ranks that want them.
func (o *Objects) collect(ctx context.Context, wanted bool, move func(all pipeline.Vector) pipeline.Task) ([][]byte, error) {
	g := o.g
	sizes := make([]int64, g.Size())
	var all pipeline.Vector
	err := o.run(ctx, func() error { // the sizes go to all, so that all know of one that is missing
		sizes[g.rank] = o.size()
		t := pipeline.InPlace(g.Choose.AllGather(g.rank, g.Size(), sizeBytes, 1), reduce.Bytes(sizes))
		if err := o.exchange(&t); err != nil {
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
		t = move(all)
		return o.exchange(&t)
	})
	if err != nil {
		return nil, err
	}
	return all.Bufs, nil
}

// Scatter returns part Rank of what rank src gives. Elsewhere parts does not matter. cause is why rank src gives nothing.
func (o *Objects) Scatter(ctx context.Context, parts [][]byte, cause error, src int) ([]byte, error) {
	g := o.g
	var sizes []int64
	if g.rank == src {
		o.Give(nil, cause)
		sizes = slices.Repeat([]int64{o.size()}, max(len(parts), g.Size()))
		for r, p := range parts {
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
		v := pipeline.Vector{Bufs: parts}
		v.SetBlocksOfBufs(1)
		return o.exchange(&pipeline.Task{
			Plan: plan.LinearScatter(nil, g.rank, src, len(o.payload), v.Blocks),
			Src:  v, Dst: pipeline.Vector{Buf: o.payload},
		})
	})
	return o.payload, err
}

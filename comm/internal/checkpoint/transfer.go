package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/internal/cpu"
)

// A commit comes from at most maxSources ranks, and each of several sources sends at least minShare bytes. A receiver needs two processors for
// each: one to take the bytes, and one for what the network, or a source on its own machine, does. With fewer, one source is faster.
const (
	maxSources = 4
	minShare   = 2 << 20
)

// sourcesFor returns from how many sources a rank with so many processors can receive at the same time.
func sourcesFor(processors int) int { return max(processors/2, 1) }

// sources returns the holders that send a commit of so many bytes. They are as far apart as possible, because neighbors are often on one
// machine.
func (a agreement) sources(bytes int) []int {
	n := max(min(len(a.holders), maxSources, a.mostFrom, bytes/minShare), 1)
	list := make([]int, n)
	for i := range list {
		list[i] = a.holders[i*len(a.holders)/n]
	}
	return list
}

// transfer copies what is shared from the ranks that have the commit to those that do not, and returns it. Several holders send ranges of it at the
// same time if there is much to send, each to all receivers. own is nil on receivers, which put the copy in spare if it fits.
func transfer(ctx context.Context, world *comm.Group, a agreement, own *version, spare *memory) (*version, error) {
	var groups []*comm.Group // by source; nil where this rank has no part in it
	defer func() {
		for _, g := range groups {
			_ = g.Close() // its calls have returned their errors
		}
	}()
	join := func(source int) (err error) {
		var g *comm.Group
		if own == nil || world.Rank() == source {
			g, err = comm.NewGroupOf(ctx, world, append([]int{source}, a.receivers...), fmt.Sprintf("elastic: round %d, from rank %d", a.round, source))
		}
		groups = append(groups, g)
		return err
	}
	if err := join(a.holders[0]); err != nil {
		return nil, err
	}
	v, err := broadcastManifest(ctx, groups[0], own, spare)
	if err != nil {
		return nil, err
	}
	b := v.contents
	sources := a.sources(len(b))
	for _, source := range sources[1:] {
		if err := join(source); err != nil {
			return nil, err
		}
	}
	errs := make([]error, len(sources))
	var work sync.WaitGroup
	for i, g := range groups {
		if g != nil {
			work.Go(func() {
				errs[i] = broadcast(ctx, g, b[bound(len(b), i, len(sources)):bound(len(b), i+1, len(sources))])
			})
		}
	}
	work.Wait()
	return v, errors.Join(errs...)
}

// broadcastManifest returns own on rank 0 of g, and a version with the same entries on the others. It does nothing without g.
func broadcastManifest(ctx context.Context, g *comm.Group, own *version, spare *memory) (*version, error) {
	if g == nil {
		return own, nil
	}
	length := []uint64{0}
	if own != nil {
		length[0] = uint64(len(own.manifest))
	}
	if err := comm.Broadcast(ctx, g, length, 0); err != nil {
		return nil, err
	}
	if own != nil {
		return own, comm.Broadcast(ctx, g, own.manifest, 0)
	}
	if err := checkLength(g.WorldRank(0), length[0]); err != nil {
		return nil, err
	}
	manifest := make([]byte, length[0])
	if err := comm.Broadcast(ctx, g, manifest, 0); err != nil {
		return nil, err
	}
	return newVersion(manifest, spare, false)
}

// broadcast sends b from rank 0 to the others. They receive it in a buffer that stays in the cache: to write from there past the cache costs
// less than to receive in memory.
func broadcast(ctx context.Context, g *comm.Group, b []byte) error {
	buffer := make([]byte, chunk)
	for piece := range slices.Chunk(b, chunk) {
		if g.Rank() == 0 {
			if err := comm.Broadcast(ctx, g, piece, 0); err != nil {
				return err
			}
			continue
		}
		if err := comm.Broadcast(ctx, g, buffer[:len(piece)], 0); err != nil {
			return err
		}
		cpu.CopyNonTemporal(piece, buffer[:len(piece)])
	}
	return comm.Barrier(ctx, g) // no rank closes g before all are done
}

// chunk is how many bytes of a commit a rank receives at once: they stay in its second-level cache.
const chunk = 512 << 10

// bound returns where range i of n begins, in bytes of total. Ranges begin at whole pages.
func bound(total, i, n int) int {
	const page = 4096
	if i == n {
		return total
	}
	return total / n * i / page * page
}

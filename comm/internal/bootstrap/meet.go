package bootstrap

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/store"
)

// The store has these keys, under a prefix of the round. Ranks of other versions read them, so their names stay.
//
//	seat/<rank>               mark of the process that is the rank, see claims
//	joined/<rank>             how many times the rank has joined: the generation of the world
//	<generation>/rank/<rank>  Info of the rank, by itself
//	<generation>/world        worldDoc, by rank 0 when all have come, or when it gives up
//	<generation>/seen/<rank>  set by the rank once it has read world
const worldKey = "world"

func infoKey(rank int) string { return fmt.Sprintf("rank/%d", rank) }
func seenKey(rank int) string { return fmt.Sprintf("seen/%d", rank) }

func ofGeneration(round store.Store, generation int64) store.Store {
	return store.NewPrefix(round, fmt.Sprintf("%d/", generation))
}

// has reports whether the store has a key of a generation. It never waits.
func has(ctx context.Context, s store.Store, key string) (bool, error) {
	none := []byte{0} // no key holds this
	now, err := s.CompareAndSwap(ctx, key, none, none)
	return err == nil && string(now) != string(none), err
}

// A worldDoc is what rank 0 writes when all ranks have come, or when it gives up. As ranks of other versions read it,
// never change the JSON name or the type of a field.
type worldDoc struct {
	ID      uint64 `json:"id,string"`
	Size    int    `json:"size,omitempty"` // WORLD_SIZE on rank 0; 0: that of a build before it said so
	Ranks   []Info `json:"ranks,omitempty"`
	Far     bool   `json:"far,omitempty"`     // machines are far away from each other: see areFar
	Missing []int  `json:"missing,omitempty"` // rank 0 gave up because these did not come
}

// probeTimeout limits the calls to the store that find out, after a timeout, which ranks are missing.
const probeTimeout = 2 * time.Second

// meet publishes the Info of this rank and returns the world, once all ranks have come and, on rank 0, have read it.
func meet(ctx context.Context, round store.Store, generation int64, p place, me Info) (worldDoc, error) {
	start := time.Now()
	s := ofGeneration(round, generation)
	doc, err := json.Marshal(me)
	if err != nil {
		return worldDoc{}, err
	}
	if err := s.Set(ctx, infoKey(p.rank), doc); err != nil {
		return worldDoc{}, p.notAnswered(err)
	}
	var w worldDoc
	if p.rank == 0 {
		w, err = makeWorld(ctx, s, p.size)
	} else {
		w, err = readWorld(ctx, s, p)
	}
	waited := time.Since(start)
	if !errors.Is(err, context.DeadlineExceeded) {
		err = p.notAnswered(err)
	} else if len(w.Missing) == 0 {
		var silent error
		if w.Missing, silent = whoIsMissing(s, p); silent != nil && len(w.Missing) == 0 {
			err = p.notAnswered(err)
		}
	}
	if len(w.Missing) > 0 {
		if p.rank == 0 {
			stopWaiting(s, p.size, w)
		}
		return w, &MissingError{Missing: w.Missing, Size: p.size, Where: p.meet, After: waited, Err: err}
	}
	if err != nil {
		return w, err
	}
	return w, w.check(p, me)
}

// makeWorld collects the Infos of the ranks, publishes the world, and waits until all have read it.
func makeWorld(ctx context.Context, s store.Store, size int) (worldDoc, error) {
	w := worldDoc{ID: randomID(), Size: size, Ranks: make([]Info, size)}
	for r := range size {
		b, err := s.Get(ctx, infoKey(r))
		if err != nil {
			return worldDoc{}, err
		}
		if w.Ranks[r], err = parseInfo(b); err == nil {
			err = w.Ranks[r].fits()
		}
		if err != nil {
			return worldDoc{}, fmt.Errorf("rank %d wrote nonsense about itself: %w", r, err)
		}
	}
	w.Far = areFar(w.Ranks)
	if err := publish(ctx, s, w); err != nil {
		return worldDoc{}, err
	}
	return w, s.Wait(ctx, seenKeys(size, nil)...)
}

func publish(ctx context.Context, s store.Store, w worldDoc) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return s.Set(ctx, worldKey, b)
}

// parseWorld parses the worldDoc of rank 0, for a world of size ranks.
func parseWorld(b []byte, size int) (w worldDoc, err error) {
	if most := (size + 1) * longestInfo; len(b) > most {
		return w, fmt.Errorf("%d bytes, limit %d for %d ranks: set the same WORLD_SIZE for every rank", len(b), most, size)
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return w, err
	}
	for r := range w.Ranks {
		if err := w.Ranks[r].cleanHost(); err != nil {
			return worldDoc{}, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	if w.Size == 0 {
		w.Size = size
	}
	for _, r := range w.Missing {
		if r < 0 || r >= w.Size {
			return worldDoc{}, fmt.Errorf("rank %d of %d is missing", r, w.Size)
		}
	}
	return w, nil
}

func readWorld(ctx context.Context, s store.Store, p place) (worldDoc, error) {
	var w worldDoc
	b, err := s.Get(ctx, worldKey)
	if err != nil {
		return w, err
	}
	if w, err = parseWorld(b, p.size); err != nil {
		return w, fmt.Errorf("rank 0 wrote nonsense about the world: %w", err)
	}
	if err = p.sameSize(w.Size); err == nil && len(w.Missing) > 0 {
		err = context.DeadlineExceeded
	}
	return w, errors.Join(err, s.Set(ctx, seenKey(p.rank), nil))
}

// stopWaiting publishes that rank 0 stops waiting and why. It waits until the ranks that have come have read that,
// because it ends the store.
func stopWaiting(s store.Store, size int, w worldDoc) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if publish(ctx, s, w) == nil {
		_ = s.Wait(ctx, seenKeys(size, w.Missing)...)
	}
}

// seenKeys returns the keys that ranks set when they have read the world, without those of rank 0 and of missing ranks.
func seenKeys(size int, missing []int) []string {
	var keys []string
	for r := 1; r < size; r++ {
		if !slices.Contains(missing, r) {
			keys = append(keys, seenKey(r))
		}
	}
	return keys
}

// whoIsMissing returns the ranks for which p has waited, or why the store does not say.
func whoIsMissing(s store.Store, p place) ([]int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	missing, err := missingRanks(ctx, s, p.size)
	return slices.DeleteFunc(missing, func(rank int) bool { return rank == p.rank }), err
}

// missingRanks returns the ranks that keep the others waiting: those that have not published their Info; or else rank
// 0, if it has not published the world; or else those that have not read the world. A rank may have begun to join, and
// have ended or stopped then.
func missingRanks(ctx context.Context, s store.Store, size int) (missing []int, err error) {
	look := func(first int, key func(rank int) string) error {
		for r := first; r < size; r++ {
			there, err := has(ctx, s, key(r))
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, r)
			}
		}
		return nil
	}
	if err := look(0, infoKey); err != nil || len(missing) > 0 {
		return missing, err
	}
	if published, err := has(ctx, s, worldKey); err != nil || !published {
		return []int{0}, err
	}
	return missing, look(1, seenKey)
}

// sameSize refuses a world of another size.
func (p place) sameSize(onRank0 int) error {
	if p.size != onRank0 {
		return refusef("WORLD_SIZE is %d here and %d on rank 0: set the same for every rank", p.size, onRank0)
	}
	return nil
}

// check refuses a world in which this rank cannot talk to all others.
func (w worldDoc) check(p place, me Info) error {
	if err := p.sameSize(len(w.Ranks)); err != nil {
		return err
	}
	for r, other := range w.Ranks {
		if other.Protocol != me.Protocol {
			return refusef("rank %d on %s has another version of comm (its protocol has number %d, and this rank's %d): build all ranks from the same version", r, other.Host, other.Protocol, me.Protocol)
		}
		host, _, err := net.SplitHostPort(other.Addr)
		if err != nil {
			return fmt.Errorf("rank %d says that it listens on %q: %w", r, other.Addr, err)
		}
		if other.TLS != me.TLS {
			return refusef("rank %d on %s has TLS: %t, and this rank has TLS: %t: all ranks have WithTLS (gorun: --worker-tls), or none", r, other.Host, other.TLS, me.TLS)
		}
		if ip := net.ParseIP(host); ip.IsLoopback() && r != p.rank && !other.SameNetwork(me.Place) {
			return refusef("rank %d on %s listens on loopback only, and this one on %s has another network: give every rank the same secret in GORUN_TOKEN. If that is not enough, set GORUN_COMM_ADDR (gorun: --local-addr) on %[2]s to the address by which others reach it", r, other.Host, me.Host)
		}
		if other.OwnToken != me.OwnToken {
			return refusef("rank %d on %s belongs to another user or container, or only one of the two was given a token: give every rank the same secret in GORUN_TOKEN", r, other.Host)
		}
	}
	return nil
}

func (w worldDoc) isOneNetwork() bool {
	return !slices.ContainsFunc(w.Ranks, func(r Info) bool { return !r.SameNetwork(w.Ranks[0].Place) })
}

// peers returns what groups need to know of the ranks.
func (w worldDoc) peers() []core.Peer {
	peers := make([]core.Peer, len(w.Ranks))
	for r := range w.Ranks {
		peers[r] = w.Ranks[r].Peer
	}
	return peers
}

func (w worldDoc) addresses() []string {
	addrs := make([]string, len(w.Ranks))
	for r := range w.Ranks {
		addrs[r] = w.Ranks[r].Addr
	}
	return addrs
}

func randomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

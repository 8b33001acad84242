package bootstrap

import (
	"errors"

	"github.com/gorun/gorun/comm/transport"
)

// Streams are streams of a world of the round before, to processes that may be in the next round.
type Streams struct {
	World uint64
	Rank  int // of this process in that world
	TLS   bool
	To    []transport.Stream // by rank in that world; nil: there is none
}

// longestBitmap is the most bytes of a bitmap in an Info.
const longestBitmap = longestInfo / 4

// streamsInfo is what an Info says of Streams.
type streamsInfo struct {
	World uint64 `json:"world,string"`
	Rank  int    `json:"rank"`
	To    []byte `json:"to"` // a bit for each rank in that world, the lowest first: whether there is a stream
}

// info returns what the others need to know, or nil if there is nothing.
func (s *Streams) info(tls bool) *streamsInfo {
	if s == nil || s.TLS != tls || len(s.To) > 8*longestBitmap {
		return nil
	}
	info := &streamsInfo{World: s.World, Rank: s.Rank, To: make([]byte, (len(s.To)+7)/8)}
	for r, stream := range s.To {
		if stream != nil {
			info.To[r/8] |= 1 << (r % 8)
		}
	}
	return info
}

// has reports whether there is a stream to a rank.
func (i *streamsInfo) has(rank int) bool {
	return rank >= 0 && rank/8 < len(i.To) && i.To[rank/8]&(1<<(rank%8)) != 0
}

// take takes out the streams of s that both ends have, and returns them by rank in the next world, in which ranks have said so in their Infos.
func (s *Streams) take(ranks []Info, me int) []transport.Stream {
	mine := ranks[me].Streams
	if s == nil || mine == nil {
		return nil
	}
	taken := make([]transport.Stream, len(ranks))
	for r := range ranks {
		other := ranks[r].Streams
		if r == me || other == nil || other.World != mine.World || !other.has(mine.Rank) || !mine.has(other.Rank) {
			continue
		}
		if other.Rank < len(s.To) { // mine has come back from rank 0
			taken[r], s.To[other.Rank] = s.To[other.Rank], nil
		}
	}
	return taken
}

// Close closes the streams that have not been taken out.
func (s *Streams) Close() error {
	if s == nil {
		return nil
	}
	var err error
	for _, stream := range s.To {
		if stream != nil {
			err = errors.Join(err, stream.Close())
		}
	}
	clear(s.To)
	return err
}

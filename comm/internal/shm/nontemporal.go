package shm

import "github.com/gorun/gorun/comm/internal/cpu"

// A rank writes for others, into a slot or into their buffers, with ordinary stores, which go through the caches, or with non-temporal
// stores, which bypass them. Data that has bypassed the caches takes longer to read. But between processors without a common cache,
// ordinary stores take ten times as long as non-temporal ones. The system does not tell, and on a virtual machine it changes while a
// program runs. So a rank measures both from time to time, and uses the faster one. The readers need not know which.

const (
	sampleEvery = 32 << 20  // bytes between measurements
	sampleSize  = 128 << 10 // bytes of a measurement, for each kind of stores
	sampleChunk = 16 << 10  // bytes that are written with one kind of stores before the other kind has its turn
	readPenalty = 4         // what readers lose by non-temporal stores, in times of what these stores take
)

// A copyPolicy decides which kind of stores a rank uses.
type copyPolicy struct {
	nonTemporal  bool
	sinceSampled int // bytes since the last measurement
	samples      struct{ cached, nonTemporal sample }
	cheapest     float64 // the least that a byte has ever cost with non-temporal stores; 0: not known
}

// A sample is what one kind of stores has cost.
type sample struct {
	bytes    int
	cheapest float64 // the cost of a byte of the fastest chunk: others may have been interrupted
}

// newCopyPolicy is a policy that first measures when so many bytes have been written.
func newCopyPolicy(first int) copyPolicy { return copyPolicy{sinceSampled: sampleEvery - first} }

// write copies src to dst.
func (p *copyPolicy) write(dst, src []byte) {
	if len(src) < leastNonTemporal {
		cpu.Copy(dst, src)
		return
	}
	for p.sinceSampled >= sampleEvery && len(src) >= leastNonTemporal {
		n := min(len(src), sampleChunk)
		p.sample(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
	store(dst, src, p.nonTemporal)
	p.sinceSampled += len(src)
}

// store copies src to dst with one kind of stores.
func store(dst, src []byte, nonTemporal bool) {
	if nonTemporal {
		cpu.CopyNonTemporal(dst, src)
	} else {
		cpu.Copy(dst, src)
	}
}

// sample copies a chunk with the kind of stores that has been measured less. It decides when both have been measured enough.
func (p *copyPolicy) sample(dst, src []byte) {
	s := &p.samples.cached
	nonTemporal := p.samples.nonTemporal.bytes < s.bytes
	if nonTemporal {
		s = &p.samples.nonTemporal
	}
	begun := cpu.Now()
	store(dst, src, nonTemporal)
	s.add(len(src), cpu.Now()-begun)
	if p.samples.nonTemporal.bytes >= sampleSize {
		p.decide()
	}
}

func (s *sample) add(bytes int, took cpu.Stamp) {
	if cost := float64(took) / float64(bytes); s.bytes == 0 || cost < s.cheapest {
		s.cheapest = cost
	}
	s.bytes += bytes
}

// decide ends a measurement.
func (p *copyPolicy) decide() {
	cached, nonTemporal := p.samples.cached.cheapest, p.samples.nonTemporal.cheapest
	if p.cheapest == 0 || nonTemporal < p.cheapest {
		p.cheapest = nonTemporal
	}
	*p = copyPolicy{nonTemporal: cached-nonTemporal > readPenalty*p.cheapest, cheapest: p.cheapest}
}

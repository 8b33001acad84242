package elastic

// A commit comes from at most maxSources ranks, and each of several sources sends at least minPart bytes. A receiver needs two processors for
// each: one to take the bytes, and one for what the network, or a source on its own machine, does. With fewer, one source is faster.
const (
	maxSources = 4
	minPart    = 2 << 20
)

// streamsOf is from how many sources a rank with so many processors can receive at the same time.
func streamsOf(processors int) int { return max(processors/2, 1) }

// sources returns the holders that send a commit of so many bytes. They are as far apart as possible, because neighbors are often on one
// machine.
func (a agreement) sources(bytes int) []int {
	n := max(min(len(a.holders), maxSources, a.streams, bytes/minPart), 1)
	list := make([]int, n)
	for i := range list {
		list[i] = a.holders[i*len(a.holders)/n]
	}
	return list
}

// A piece is a part of one of several buffers.
type piece struct{ buffer, from, to int }

// split cuts buffers of these lengths into n parts of about the same length. Each part is a list of pieces.
func split(lengths []int, n int) [][]piece {
	total := 0
	for _, l := range lengths {
		total += l
	}
	parts, begin := make([][]piece, n), 0 // begin of a buffer, counted from the begin of the first
	for b, l := range lengths {
		for i := range parts {
			from, to := max(bound(total, i, n)-begin, 0), min(bound(total, i+1, n)-begin, l)
			if from < to {
				parts[i] = append(parts[i], piece{b, from, to})
			}
		}
		begin += l
	}
	return parts
}

// bound is where part i of n begins.
func bound(total, i, n int) int {
	const page = 4096
	if i == n {
		return total
	}
	return total / n * i / page * page
}

// chunk is how many bytes of a commit a rank receives at once: they stay in its second-level cache until it has copied them.
const chunk = 512 << 10

// inChunks cuts pieces into chunks.
func inChunks(pieces []piece) (chunks []piece) {
	for _, p := range pieces {
		for from := p.from; from < p.to; from += chunk {
			chunks = append(chunks, piece{p.buffer, from, min(from+chunk, p.to)})
		}
	}
	return chunks
}

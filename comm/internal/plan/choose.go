package plan

// shortAllReduce is the length in bytes up to which fewer steps beat fewer bytes in an all-reduce. It depends on
// nothing but the call, so every rank chooses the same algorithm.
const shortAllReduce = 16 << 10

// AllReduce picks the algorithm for a vector of n elements of elem bytes each.
func AllReduce(rank, size, n, elem int) Plan {
	if n < size || n*elem <= shortAllReduce {
		return DoublingAllReduce(rank, size, n)
	}
	return RingAllReduce(rank, size, n)
}

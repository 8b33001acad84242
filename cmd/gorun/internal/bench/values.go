package bench

// Inputs and results are small whole numbers, as in nccl-tests, so that results are exact in every type, and in any
// order of ranks. They repeat after a prime number of elements, so that a block in another block's place shows up as
// wrong.
const period = 509

// poison is neither an input nor a result.
const poison = 200

// For each element of a sum or product, only this many ranks contribute a number that is not neutral. With more, the
// result would not be exact in a bfloat16, which is exact up to 256.
const (
	adders      = 64 // of 0 to 3
	multipliers = 4  // of 1 to 3
)

// number returns element i of a rank's input for the reduction op, which may be empty.
func number(op string, ranks, rank, i int) int {
	n := (7*(i%period) + 37*rank) % 101
	turn := (i%period + rank) % ranks
	switch op {
	case "sum":
		if turn < adders {
			return n % 4
		}
		return 0
	case "prod":
		if turn < multipliers {
			return 1 + n%3
		}
		return 1
	case "avg":
		n = average(ranks, i)
		if turn == 0 {
			n++
		}
		if turn == ranks-1 {
			n--
		}
		return n
	default:
		return n
	}
}

// average returns the average of element i over all ranks. The sum fits in an int8.
func average(ranks, i int) int {
	if ranks > 127 {
		return 0
	}
	return i % period % 2
}

// reduced returns element i of the reduction over all ranks.
func reduced(op string, ranks, i int) int {
	if op == "avg" {
		return average(ranks, i)
	}
	result := number(op, ranks, 0, i)
	for rank := 1; rank < ranks; rank++ {
		n := number(op, ranks, rank, i)
		switch op {
		case "sum":
			result += n
		case "prod":
			result *= n
		case "min":
			result = min(result, n)
		case "max":
			result = max(result, n)
		}
	}
	return result
}

package bench

// What ranks give, and what must become of it, are small whole numbers, chosen so that the result is exact in every type
// and whatever the order in which ranks are combined, as in nccl-tests. They repeat after a prime number of elements,
// so that a block in another block's place is found.
const period = 509

// poison is no rank's number, and no result.
const poison = 200

// The numbers of so many ranks are neither neutral nor wiped out, for any element of a sum or product: more would not be
// exact in a bfloat16, which counts to 256.
const (
	adders      = 64 // of 0 to 3
	multipliers = 4  // of 1 to 3
)

// number is what a rank gives as element i of its buffer, to be reduced by op if that is not empty.
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

// average is the average of what all ranks give as element i. The sum fits in an int8.
func average(ranks, i int) int {
	if ranks > 127 {
		return 0
	}
	return i % period % 2
}

// reduced is element i of the reduction of what all ranks give.
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

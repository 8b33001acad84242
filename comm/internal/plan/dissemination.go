package plan

// DisseminationBarrier sends empty messages over distances that double, until every rank has heard of every other one.
//
// Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988. ceil(log2 P) steps.
func DisseminationBarrier(rank, size int) Plan {
	var p Plan
	for d := 1; d < size; d *= 2 {
		p = append(p, Step{To: mod(rank+d, size), From: mod(rank-d, size)})
	}
	return p
}

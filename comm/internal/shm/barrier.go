package shm

import "github.com/gorun/gorun/comm/internal/choice"

// Barrier returns when all ranks have called it. A few ranks read empty LL messages from each other. If there are many, they use a
// dissemination barrier (Hensgen, Finkel and Manber 1988): in round k every rank signals the one 2^k further on, so no rank waits for
// more than log2(n) others.
func (t *Team) Barrier() error {
	if t.n <= choice.MostLLBarrier && t.isShort(0, 1) {
		return t.barrierLL()
	}
	for k, distance := 0, 1; distance < t.n; k, distance = k+1, 2*distance {
		t.done(k + 1)
		if err := t.wait((t.me-distance+t.n)%t.n, k+1); err != nil {
			return err
		}
	}
	return nil
}

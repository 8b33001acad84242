package cost

import (
	"time"

	"github.com/gorun/gorun/comm/internal/choice"
	"github.com/gorun/gorun/comm/internal/plan"
)

const (
	// Ways are compared for these numbers of bytes, and those in between that are powers of two.
	leastCompared, mostCompared = 64, 64 << 20
	// mostCompute is the most messages that all comparisons for an operation simulate. So they take less than a second.
	mostCompute = 1 << 20
)

// Choice returns the ways of op in t that take the least time in s, by bytes of the whole buffer. It keeps to the way that t chooses unless
// another one is clearly faster. It returns nil if there is only one way, or a comparison would take too long.
func (s *System) Choice(t choice.Table, op string) choice.Choice {
	ranks, ways := len(s.Machines), t.Free(op)
	if len(ways) < 2 || ranks < 2 {
		return nil
	}
	var chosen choice.Choice
	effort := 0
	for bytes := leastCompared; bytes <= mostCompared; bytes *= 2 {
		c := choice.Chooser{Table: t}
		best := c.Pick(op, ranks, bytes)
		least, known := s.timeBy(c, op, best, bytes, &effort)
		if !known {
			break
		}
		least -= least / 20
		for _, way := range ways {
			if took, known := s.timeBy(c, op, way, bytes, &effort); known && took < least {
				best, least = way, took
			}
		}
		if effort > mostCompute {
			return nil
		}
		if n := len(chosen); n > 0 && chosen[n-1].Name == best {
			chosen = chosen[:n-1]
		}
		chosen = append(chosen, choice.Way{Name: best, UpTo: bytes + bytes/2})
	}
	if len(chosen) > 0 {
		chosen[len(chosen)-1].UpTo = choice.Any
	}
	return chosen
}

// timeBy returns the time of op on so many bytes by one way, and adds to effort how many steps there are to simulate.
func (s *System) timeBy(c choice.Chooser, op, way string, bytes int, effort *int) (time.Duration, bool) {
	ranks := len(s.Machines)
	plans, inPlace := Plans(plan.Choices{Chooser: c.By(op, way, ranks)}, op, ranks, bytes)
	for _, p := range plans {
		*effort += len(p)
	}
	if *effort > mostCompute {
		return 0, false
	}
	return s.Time(plans, inPlace)
}

package hier

import (
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/pipeline"
)

// unlimited is a caller who waits for ever.
type unlimited struct{ pipeline.Caller }

func (unlimited) Remaining() time.Duration { return 0 }

// An asynchronous exchange allocates nothing, except the first one of a call.
func TestExchangesAllocateNothing(t *testing.T) {
	c := Call{Layout: new(Layout)}
	c.Caller = unlimited{}
	if allocs := testing.AllocsPerRun(100, func() {
		x := c.exchange(true)
		for range 3 * mostPending {
			x.start(pipeline.Task{})
			if x.pending == mostPending {
				if err := x.await(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := x.end(); err != nil {
			t.Error(err)
		}
	}); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

package tcp

import (
	"errors"
	"testing"
	"time"

	"github.com/gorun/gorun/comm/internal/call"
	"github.com/gorun/gorun/comm/internal/diagnosis"
	"github.com/gorun/gorun/comm/internal/endpoint"
)

// A rank that leaves in good order is not taken for dead, and what it has sent arrives, though others send to it to the
// end: what it has not read of that must not make the system reset the connection, and throw away what is on its way.
func TestARankThatLeavesWhileOthersSend(t *testing.T) {
	for range 50 {
		trs := world(t, 2, nil)
		var ends [2]*endpoint.Endpoint
		var comms [2]*endpoint.Communicator
		for r, tr := range trs {
			ends[r] = endpoint.New(tr, r, 2, endpoint.Options{})
			l, err := ends[r].Open(1, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			comms[r] = l
		}
		wait := func(op *endpoint.Op) error { return op.Wait(t.Context(), time.Minute) }
		started := make(chan struct{})
		flooded := make(chan struct{})
		go func() {
			defer close(flooded)
			for i := 0; ; i++ {
				if err := wait(comms[1].Send(0, 5, 0, call.Call{}, make([]byte, 1000))); err != nil {
					return
				}
				if i == 10 {
					close(started)
				}
			}
		}()
		go func() { // lets the flood go on
			for wait(comms[0].Recv(1, 5, 0, call.Call{}, make([]byte, 1000))) == nil {
			}
		}()
		<-started
		const messages, size = 7, 250_000
		for range messages {
			if err := wait(comms[0].Send(1, 6, 0, call.Call{}, make([]byte, size))); err != nil {
				t.Fatal(err)
			}
		}
		if err := ends[0].Close(); err != nil {
			t.Error(err)
		}
		<-flooded
		for i := range messages {
			if err := wait(comms[1].Recv(0, 6, 0, call.Call{}, make([]byte, size))); err != nil {
				t.Fatalf("message %d of %d: %v", i+1, messages, err)
			}
		}
		var f *diagnosis.Failure
		if err := wait(comms[1].Recv(0, 6, 0, call.Call{}, nil)); !errors.As(err, &f) || f.Kind != diagnosis.Closed {
			t.Fatalf("after that: %v", err)
		}
		_ = ends[1].Close()
	}
}

package elastic

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

// TestUnasked: people learn in one line what was asked, and what its end means.
func TestUnasked(t *testing.T) {
	t.Parallel()
	c := rendezvous.Config{Access: rendezvous.Access{Endpoints: []rendezvous.Endpoint{{Host: "a", Port: 1}}}}
	for _, k := range []struct {
		err    error
		want   string
		misuse bool
	}{
		{context.DeadlineExceeded, "a:1: its etcd has ended, or has lost its leader, before it has said who is in the job: context deadline exceeded", true},
		{errors.Join(errors.New("x"), errors.New("y")), "a:1: its etcd has ended, or has lost its leader, before it has said who is in the job: x; y", true},
		{&rendezvous.NoJobError{RunID: "j"}, `no job "j" runs there, and no other`, true},
		{&rendezvous.NoJobError{RunID: "j", Jobs: []string{"i"}}, `no job "j" runs there, only: i`, true},
		{&rendezvous.NoJobError{RunID: "j", Jobs: []string{"i", "j"}}, `job "j" has no nodes there: it has just begun, or is ending`, true},
		{context.Canceled, "context canceled", false},
		{nil, "<nil>", false},
	} {
		err := unasked(c, k.err)
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); fmt.Sprint(err) != k.want || misuse != k.misuse {
			t.Errorf("%v: %v, %t", k.err, err, misuse)
		}
	}
}

package node

import (
	"context"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/store"
)

// A doubler has every write carried out twice, and returns the second answer.
type doubler struct{ store.Store }

func (d doubler) Commit(ctx context.Context, t store.Txn) (store.Answer, error) {
	if a, err := d.Store.Commit(ctx, t); err != nil {
		return a, err
	}
	return d.Store.Commit(ctx, t)
}

// TestAskedTwice: who ends a job does not take its own deed for another's, and delete it.
func TestAskedTwice(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	w := &writer{store: server.client(), keys: keysOf(DefaultPrefix, "twice"), key: "n"}
	v := prepare(t, w)
	w.store = doubler{w.store}
	if err := w.close(t.Context(), v, rendezvous.Outcome{Code: 7}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if left := keysLeft(server, w.keys.state()); len(left) != 1 {
		t.Errorf("of the job's end there is left %q", left)
	}
}

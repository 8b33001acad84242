package rendezvous_test

import (
	"context"
	"testing"

	"github.com/gorun/gorun/rendezvous"
)

type (
	plain    struct{ rendezvous.Rendezvous }
	wrapping struct {
		rendezvous.Rendezvous
		inner rendezvous.Rendezvous
	}
	restarter struct{ plain }
)

func (w wrapping) Unwrap() rendezvous.Rendezvous                           { return w.inner }
func (restarter) Restart(context.Context, *rendezvous.Round, string) error { return nil }

// TestAs: what a rendezvous inside another one can do is found.
func TestAs(t *testing.T) {
	for name, c := range map[string]struct {
		r    rendezvous.Rendezvous
		want bool
	}{
		"none": {nil, false}, "plain": {plain{}, false}, "itself": {restarter{}, true},
		"inside": {wrapping{inner: wrapping{inner: restarter{}}}, true}, "not inside": {wrapping{inner: plain{}}, false}, "not yet": {wrapping{}, false},
	} {
		if got, ok := rendezvous.As[rendezvous.Restarter](c.r); ok != c.want || ok != (got != nil) {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

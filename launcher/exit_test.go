package launcher

import "testing"

// TestSetCause: what gorun has killed has not been killed because memory ran out, though the kernel has killed somebody meanwhile.
func TestSetCause(t *testing.T) {
	hung := "it made no progress for 5s"
	for name, c := range map[string]struct {
		expired *Expiry
		hung    *string
		want    bool
	}{
		"nobody": {nil, nil, true},
		"timer":  {&Expiry{}, nil, false},
		"hang":   {nil, &hung, false},
	} {
		e := Exit{OutOfMemory: true, Stopped: true}
		e.setCause(c.expired, c.hung)
		if e.OutOfMemory != c.want || e.Expired != c.expired || (e.Hung != "") != (c.hung != nil) || e.Stopped == (c.hung != nil) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

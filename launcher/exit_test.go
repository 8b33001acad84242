package launcher

import "testing"

// TestSetHung: what gorun has killed has not been killed because memory ran out, though the kernel has killed somebody meanwhile.
func TestSetHung(t *testing.T) {
	why := "it made no progress for 5s"
	e := Exit{OutOfMemory: true, Stopped: true}
	if e.setHung(nil); !e.OutOfMemory || !e.Stopped || e.Hung != "" {
		t.Errorf("not killed: %+v", e)
	}
	if e.setHung(&why); e.OutOfMemory || e.Stopped || e.Hung != why {
		t.Errorf("killed: %+v", e)
	}
}

package reach_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/internal/reach"
)

// Who has no descriptors left is told so, and not that the endpoint is wrong, also where it is a name that could not be looked up
// for want of them.
func TestDiagnoseWithoutDescriptors(t *testing.T) {
	_, there := listen(t)
	for _, e := range []rendezvous.Endpoint{there, {Host: "localhost", Port: there.Port}, {Host: "no-such-host.invalid", Port: 1}} {
		err := withoutDescriptors(t, func() error { return reach.Diagnose(t.Context(), reach.Target{Endpoints: []rendezvous.Endpoint{e}}) })
		var problem *reach.Problem
		if !errors.As(err, &problem) || problem.Kind != reach.Exhausted || problem.Lasting() || !strings.Contains(err.Error(), "open files (ulimit -n)") ||
			strings.Contains(err.Error(), "correct the") {
			t.Errorf("%v: got %v", e, err)
		}
	}
}

// withoutDescriptors calls f while this process can open nothing.
func withoutDescriptors(t *testing.T, f func() error) error {
	var limit unix.Rlimit
	next, err := os.Open(os.DevNull)
	if err := errors.Join(err, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = uint64(next.Fd())
	if err := errors.Join(next.Close(), unix.Setrlimit(unix.RLIMIT_NOFILE, &none)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	return f()
}

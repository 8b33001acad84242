package epoll

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFewAreReadyOrTimePasses(t *testing.T) {
	a, b := pair(t)
	c, d := pair(t)
	var f Few
	f.Add(a, 7, unix.POLLIN)
	f.Add(c, 8, unix.POLLIN)
	if ready := f.Wait(time.Millisecond); len(ready) > 0 {
		t.Errorf("%v are ready", ready)
	}
	write(t, d)
	if ready := f.Wait(time.Minute); !slices.Equal(ready, []int{8}) {
		t.Errorf("%v are ready, want 8", ready)
	}
	write(t, b)
	if ready := f.Wait(time.Minute); !slices.Equal(ready, []int{7, 8}) {
		t.Errorf("%v are ready, want 7 and 8", ready)
	}
	f.Clear()
	f.Add(c, 9, unix.POLLOUT)
	if ready := f.Wait(time.Minute); !slices.Equal(ready, []int{9}) {
		t.Errorf("%v are ready, want 9", ready)
	}
}

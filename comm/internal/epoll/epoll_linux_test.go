package epoll

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is two sockets that are joined.
func pair(t *testing.T) (a, b int) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(fds[0]), unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func newSet(t *testing.T) *Set {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t *testing.T, fd int) {
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestEveryDescriptorIsReturnedOnce(t *testing.T) {
	s := newSet(t)
	a, b := pair(t)
	c, d := pair(t)
	check(t, s.Add(a, 7, unix.POLLIN), s.Add(c, 8, unix.POLLIN), s.Remove(c))
	write(t, d)
	time.AfterFunc(time.Millisecond, func() { _, _ = unix.Write(b, []byte("x")) })
	for range 3 {
		ready, err := s.Wait() // hangs if an event is lost
		if err != nil || !slices.Equal(ready, []int{7}) {
			t.Fatalf("got %v, %v, want 7", ready, err)
		}
		write(t, b)
		if ready, err = s.Ready(); err != nil || len(ready) > 0 {
			t.Fatalf("got %v, %v, want nothing", ready, err)
		}
		check(t, s.Change(a, 7, unix.POLLIN))
	}
	if ready, err := s.Ready(); err != nil || !slices.Equal(ready, []int{7}) {
		t.Fatalf("got %v, %v, want 7", ready, err)
	}
	check(t, s.Remove(a), s.Add(a, 7, unix.POLLIN), s.Add(c, 8, unix.POLLIN))
	seen := map[int]int{}
	for len(seen) < 2 {
		ready, err := s.Wait()
		check(t, err)
		for _, id := range ready {
			seen[id]++
		}
	}
	if seen[7] != 1 || seen[8] != 1 {
		t.Errorf("got %v, want each once", seen)
	}
}

func TestAnEndIsAnEvent(t *testing.T) {
	s := newSet(t)
	a, b := pair(t)
	check(t, s.Add(a, 7, unix.POLLIN))
	go func() { _ = unix.Shutdown(b, unix.SHUT_RDWR) }()
	if ready, err := s.Wait(); err != nil || !slices.Equal(ready, []int{7}) {
		t.Errorf("got %v, %v, want 7", ready, err)
	}
}

func TestCloseEndsWait(t *testing.T) {
	s := newSet(t)
	a, _ := pair(t)
	check(t, s.Add(a, 7, unix.POLLIN))
	ended := make(chan error)
	go func() {
		_, err := s.Wait()
		ended <- err
	}()
	time.AfterFunc(time.Millisecond, func() { _ = s.Close() })
	if err := <-ended; !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v, want closed", err)
	}
}

package affinity

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// bind binds the threads that may use all CPUs to own. A thread gets the CPUs of the one that starts it, so it looks again until it finds
// none to bind.
func bind(own, all []int) error {
	share, everything := setOf(own), setOf(all)
	for bound := true; bound; {
		bound = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			was, err := bindThread(id, share, everything)
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return err
			}
			bound = bound || was
		}
	}
	return nil
}

// bindThread binds a thread to share if it may use everything.
func bindThread(id int, share, everything *unix.CPUSet) (bound bool, err error) {
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(id, &now); err != nil {
		return false, os.NewSyscallError("sched_getaffinity", err)
	}
	if now != *everything || now == *share {
		return false, nil
	}
	if err := unix.SchedSetaffinity(id, share); err != nil {
		return false, os.NewSyscallError("sched_setaffinity", err)
	}
	return true, nil
}

// calls is Calls. It leaves a thread as it is that it cannot bind.
func calls(own, all []int) func() (leave func()) {
	share, everything := setOf(own), setOf(all)
	return func() func() {
		runtime.LockOSThread()
		bound, _ := bindThread(0, share, everything)
		return func() {
			if bound {
				_ = unix.SchedSetaffinity(0, everything)
			}
			runtime.UnlockOSThread()
		}
	}
}

// setOf leaves out CPUs beyond the 1024 that a CPUSet has room for. A kernel with more does not take it.
func setOf(cpus []int) *unix.CPUSet {
	var s unix.CPUSet
	for _, n := range cpus {
		s.Set(n)
	}
	return &s
}

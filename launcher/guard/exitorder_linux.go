package guard

import (
	"golang.org/x/sys/unix"
)

// An exitOrder knows in which order processes have ended, because the kernel queues their descriptors as they
// become readable. Before Linux 5.3 there are no such descriptors, and ended is always empty.
type exitOrder struct {
	epoll int
	fds   map[int]int // pid -> pidfd
	pids  map[int]int // pidfd -> pid
}

func newExitOrder() *exitOrder {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		epoll = -1
	}
	return &exitOrder{epoll: epoll, fds: map[int]int{}, pids: map[int]int{}}
}

// add adds a child that has not been waited for.
func (o *exitOrder) add(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	if unix.EpollCtl(o.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}) != nil {
		_ = unix.Close(fd)
		return
	}
	o.fds[pid], o.pids[fd] = fd, pid
}

// ended returns the processes that have ended and have not been removed, in the order of their ends.
func (o *exitOrder) ended() []int {
	if len(o.fds) == 0 {
		return nil
	}
	events := make([]unix.EpollEvent, len(o.fds))
	n, err := unix.EpollWait(o.epoll, events, 0)
	if err != nil {
		return nil
	}
	pids := make([]int, 0, n)
	for _, e := range events[:n] {
		pids = append(pids, o.pids[int(e.Fd)])
	}
	return pids
}

func (o *exitOrder) remove(pid int) {
	if fd, ok := o.fds[pid]; ok {
		_ = unix.Close(fd) // which also takes it out of the epoll set
		delete(o.fds, pid)
		delete(o.pids, fd)
	}
}

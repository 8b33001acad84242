package hang

import "golang.org/x/sys/unix"

func init() {
	for number, name := range map[int]string{
		unix.SYS_POLL: "poll", unix.SYS_SELECT: "select", unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_PAUSE: "pause", unix.SYS_OPEN: "open",
		unix.SYS_STAT: "stat", unix.SYS_ACCEPT: "accept", unix.SYS_SEMTIMEDOP: "semtimedop",
	} {
		callNames[number] = name
	}
}

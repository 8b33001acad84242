package guard

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The guard gets the workers' pipes over its socket, and does not inherit them: a process that starts with more open
// files than its soft limit cannot even load its libraries. By then, the guard has raised its own limit, as every Go
// program does. It gives the workers the limit with which the agent was started.

// maxHandover is how many descriptors are sent in one message; Linux allows 253.
const maxHandover = 250

// Each message has one byte, in addition to the descriptors.
const (
	lastHandover = byte('.')
	moreHandover = byte(',')
)

// sendFiles passes files to the process at the other end of socket, which gets its own descriptors.
func sendFiles(socket *os.File, files []*os.File) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	for more := true; more; {
		n := min(len(files), maxHandover)
		fds := make([]int, n)
		for i, f := range files[:n] {
			fds[i] = int(f.Fd())
		}
		files = files[n:]
		mark := lastHandover
		if more = len(files) > 0; more {
			mark = moreHandover
		}
		waitErr := raw.Write(func(fd uintptr) bool {
			err = unix.Sendmsg(int(fd), []byte{mark}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(err, unix.EAGAIN)
		})
		if err := errors.Join(waitErr, err); err != nil {
			return err
		}
	}
	return nil
}

// receiveFiles receives the files of sendFiles; socket must be in blocking mode. The descriptors keep their order, and
// are closed on exec.
func receiveFiles(socket int) (fds []int, err error) {
	mark, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*maxHandover))
	for {
		n, size, flags, _, err := unix.Recvmsg(socket, mark, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.EOF
		case flags&unix.MSG_CTRUNC != 0:
			return nil, syscall.EMFILE
		}
		messages, err := unix.ParseSocketControlMessage(rights[:size])
		if err != nil {
			return nil, err
		}
		for i := range messages {
			got, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return nil, err
			}
			fds = append(fds, got...)
		}
		if mark[0] == lastHandover {
			return fds, nil
		}
	}
}

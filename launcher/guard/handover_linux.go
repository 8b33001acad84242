package guard

import (
	"encoding/json"
	"errors"
	"fmt"
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

// sendFiles passes files to the process at the other end of socket, which gets its own descriptors. Each message has
// one byte in addition: a blank, which means nothing to the reader of JSON.
func sendFiles(socket *os.File, files []*os.File) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	for len(files) > 0 {
		n := min(len(files), maxHandover)
		fds := make([]int, n)
		for i, f := range files[:n] {
			fds[i] = int(f.Fd())
		}
		files = files[n:]
		waitErr := raw.Write(func(fd uintptr) bool {
			err = unix.Sendmsg(int(fd), []byte{' '}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			return !errors.Is(err, unix.EAGAIN)
		})
		if err := errors.Join(waitErr, err); err != nil {
			return err
		}
	}
	return nil
}

// A message is a command with its files.
type message struct {
	command
	files []int
}

// A receiver reads what the agent sends, and takes the files of sendFiles out of it. Its socket must be in blocking
// mode. The descriptors keep their order, and are closed on exec.
type receiver struct {
	socket   int
	files    []int
	commands *json.Decoder // of the rest
}

// next waits for a message.
func (r *receiver) next() (m message, err error) {
	if err = r.commands.Decode(&m.command); errors.Is(err, syscall.EMFILE) {
		fmt.Fprintln(os.Stderr, err)
	}
	switch {
	case err != nil:
	case m.Start != nil:
		m.files = r.take(m.Start.files())
	case m.Preload != nil:
		m.files = r.take(preloadFiles)
	}
	return m, err
}

// follow returns a channel that gets all messages from now on, and is closed when the agent has died.
func (r *receiver) follow() <-chan message {
	messages := make(chan message)
	go func() {
		defer close(messages)
		for {
			m, err := r.next()
			if err != nil {
				return
			}
			messages <- m
		}
	}()
	return messages
}

func (r *receiver) Read(p []byte) (int, error) {
	rights := make([]byte, unix.CmsgSpace(4*maxHandover))
	for {
		n, size, flags, _, err := unix.Recvmsg(r.socket, p, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		case flags&unix.MSG_CTRUNC != 0:
			return 0, syscall.EMFILE
		}
		messages, err := unix.ParseSocketControlMessage(rights[:size])
		for i := range messages {
			fds, rightsErr := unix.ParseUnixRights(&messages[i])
			r.files, err = append(r.files, fds...), errors.Join(err, rightsErr)
		}
		return n, err
	}
}

// take returns the first n files that have come, which belong to the caller from now on.
func (r *receiver) take(n int) []int {
	n = min(n, len(r.files))
	files := r.files[:n:n]
	r.files = r.files[n:]
	return files
}

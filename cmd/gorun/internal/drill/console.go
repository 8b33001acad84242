package drill

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A console is a pipe that nobody reads until readConsole is called.
type console struct{ reader, writer *os.File }

func newConsole() (*console, error) {
	reader, writer, err := os.Pipe()
	return &console{reader, writer}, err
}

func (c *console) close() {
	if c != nil {
		_, _ = c.reader.Close(), c.writer.Close() // it may have been
	}
}

// isFull reports whether a write would block.
func (c *console) isFull() (full bool, err error) {
	raw, err := c.writer.SyscallConn()
	if err != nil {
		return false, err
	}
	var pollErr error
	err = raw.Control(func(fd uintptr) {
		n, errno := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 0)
		full, pollErr = n == 0, errno
	})
	if err == nil {
		err = pollErr
	}
	return full && err == nil, err
}

// consoleFull waits until the console of a node is full.
func consoleFull(node int) step {
	return step{fmt.Sprintf("nobody reads the console of node %d, until it is full", node), func(ctx context.Context, d *drill) error {
		for {
			full, err := d.agents[node].console.isFull()
			if full || err != nil {
				return err
			}
			if err := d.pass(ctx, endPause); err != nil { // there is no event for a pipe that is full
				return err
			}
		}
	}}
}

// readConsole starts to read the console of a node.
func readConsole(node int) step {
	return act(fmt.Sprintf("the console of node %d is read", node), func(d *drill) error {
		c := d.agents[node].console
		d.others.Go(func() { _, _ = io.Copy(io.Discard, c.reader) }) // until the agent and all of its workers have ended
		return c.writer.Close()
	})
}

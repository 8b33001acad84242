// Package pmi speaks PMI-1 with a process manager such as MPICH's mpiexec (hydra) or Flux, as far as that is needed to give a text of
// rank 0 to all ranks. The wire protocol is lines of words key=value over a stream, which the manager leaves to each process as an open
// descriptor. MPICH describes it in src/pmi/doc and implements it in src/pmi/src/pmi_v1.c.
package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

const (
	maxLine  = 16 << 10 // bytes
	maxValue = 256      // bytes of a text; managers allow 1024 and more
	key      = "gorun-rank-0"
)

// Broadcast returns the text of rank 0, which is mine there: at most 256 visible ASCII characters, without spaces and "=". All ranks
// must call it, once in their lives: it ends this process's part in PMI. fd is the descriptor of the stream, which Broadcast closes.
func Broadcast(ctx context.Context, fd int, rank int, mine string) (string, error) {
	file := os.NewFile(uintptr(fd), "PMI")
	if file == nil {
		return "", fmt.Errorf("descriptor %d is not one", fd)
	}
	conn, err := net.FileConn(file)
	_ = file.Close() // conn has its own
	if err != nil {
		return "", fmt.Errorf("descriptor %d: %w", fd, err)
	}
	defer func() { _ = conn.Close() }() // all has been said
	return broadcast(ctx, conn, rank, mine)
}

// broadcast is Broadcast over a stream.
func broadcast(ctx context.Context, conn net.Conn, rank int, mine string) (string, error) {
	if rank == 0 && !isText(mine) {
		return "", fmt.Errorf("%q cannot be sent", mine)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := client{conn: conn, lines: bufio.NewReaderSize(conn, maxLine)}
	c.call("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
	kvs := c.call("cmd=get_my_kvsname", "my_kvsname")["kvsname"]
	if rank == 0 {
		c.call("cmd=put kvsname="+kvs+" key="+key+" value="+mine, "put_result")
	}
	c.call("cmd=barrier_in", "barrier_out")
	text := c.call("cmd=get kvsname="+kvs+" key="+key, "get_result")["value"]
	c.call("cmd=finalize", "finalize_ack")
	switch {
	case ctx.Err() != nil && c.err != nil:
		return "", context.Cause(ctx)
	case c.err != nil:
		return "", c.err
	case !isText(text):
		return "", fmt.Errorf("rank 0 has sent %.80q", text)
	}
	return text, nil
}

func isText(s string) bool {
	return s != "" && len(s) <= maxValue && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '=' })
}

// A client has the stream, and keeps the first problem.
type client struct {
	conn  net.Conn
	lines *bufio.Reader
	err   error
}

// call sends a line and returns the answer, which must be of a kind.
func (c *client) call(line, kind string) map[string]string {
	if c.err != nil {
		return nil
	}
	if _, c.err = c.conn.Write([]byte(line + "\n")); c.err != nil {
		return nil
	}
	reply, err := c.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = fmt.Errorf("a line of more than %d bytes", maxLine)
	}
	if err != nil {
		c.err = fmt.Errorf("after %q: %w", line, err)
		return nil
	}
	fields := make(map[string]string)
	for word := range strings.FieldsSeq(string(reply)) {
		name, value, _ := strings.Cut(word, "=")
		fields[name] = value
	}
	if fields["cmd"] != kind || fields["rc"] != "" && fields["rc"] != "0" {
		c.err = fmt.Errorf("after %q: the process manager answers %.200q", line, reply)
		return nil
	}
	return fields
}

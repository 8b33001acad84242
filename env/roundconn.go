package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/gorun/gorun/env/proc"
)

// A Conn is a worker's connection to its agent. Next is for one goroutine, and the others for any.
type Conn struct {
	Round Round // the round that the worker was in when it connected

	conn   net.Conn
	reader *Reader[Round]
}

// Connect connects to the socket that GORUN_ROUND_SOCKET names (env.Worker.RoundSocket). When it returns, the worker takes part.
func Connect(ctx context.Context, socket string) (*Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the agent: %w (GORUN_ROUND_SOCKET)", err)
	}
	proc.OwnConn(conn)
	c := &Conn{conn: conn, reader: NewReader[Round](conn)}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if c.Round, err = c.Next(); err != nil {
		_ = conn.Close()
		if errors.Is(err, io.EOF) {
			err = errors.New("the agent has another connection of this worker: is this process one that the worker has started? (GORUN_ROUND_SOCKET)")
		}
		return nil, err
	}
	return c, nil
}

// Next waits for the next document. It fails when the agent has gone, or after Close.
func (c *Conn) Next() (Round, error) {
	r, err := c.reader.Read()
	if err != nil {
		return r, fmt.Errorf("the agent tells of no more rounds: %w", err)
	}
	return r, nil
}

// Enter tells the agent that the worker has entered a round.
func (c *Conn) Enter(round int) error { return c.send(Message{Round: round}) }

// maxReason is how many bytes of a reason are sent, and maxMissing how many missing ranks.
const (
	maxReason  = 1024
	maxMissing = 10_000
)

// Revoke asks the agent to end a round for all ranks, for a reason that fits in a line. missing are ranks that have not come to the round, if
// that is the reason. Revoke has no effect if the round is over.
func (c *Conn) Revoke(round int, why string, missing ...int) error {
	why = cmp.Or(strings.Join(strings.Fields(why), " "), "it does not say why")
	if len(why) > maxReason {
		why = why[:maxReason] + "..."
	}
	return c.send(Message{Round: round, Revoke: strings.ToValidUTF8(why, ""), Missing: missing[:min(len(missing), maxMissing)]})
}

func (c *Conn) send(m Message) error {
	_, err := c.conn.Write(Encode(m))
	return err
}

// Close ends the connection. The worker takes part no more.
func (c *Conn) Close() error { return c.conn.Close() }

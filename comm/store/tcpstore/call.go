package tcpstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/internal/kv"
)

// A call is a request of a client that is under way.
type call struct {
	id     uint64
	result chan result // has room for the one
}

// A result is what has become of a call.
type result struct {
	payload []byte
	err     error
}

// roundTrip sends one request and waits for its reply. It returns the payload.
func (c *Client) roundTrip(ctx context.Context, op string, r request) ([]byte, error) {
	call, err := c.send(r)
	if err != nil {
		return nil, err
	}
	payload, err := c.receive(ctx, call)
	if kv.Ended(ctx, err) {
		c.cancel(call)
		return nil, store.CallError(op, r.key, err)
	}
	return payload, err
}

// send queues one request.
func (c *Client) send(r request) (call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return call{}, c.err
	}
	if len(c.pending) >= maxWaits { // the server would refuse it as well, but with an error of this one request
		return call{}, fmt.Errorf("store at %s: too many calls and keys are waiting at once, the most is %d", c.addr, maxWaits)
	}
	c.lastID++
	r.id = c.lastID
	if !c.out.push(r.frame()) {
		return call{}, fmt.Errorf("store at %s takes no requests: %d MiB are waiting to be sent", c.addr, queueFull>>20)
	}
	sent := call{id: r.id, result: make(chan result, 1)}
	c.pending[sent.id] = sent.result
	return sent, nil
}

// receive waits for the result of call. A result that has come counts, even if ctx has ended.
func (c *Client) receive(ctx context.Context, call call) ([]byte, error) {
	select {
	case r := <-call.result:
		return r.payload, r.err
	default:
	}
	select {
	case r := <-call.result:
		return r.payload, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cancel makes both ends forget those calls that have no reply yet.
func (c *Client) cancel(calls ...call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range calls {
		if _, ok := c.pending[call.id]; ok {
			delete(c.pending, call.id)
			c.out.push(request{kind: cancelKind, id: call.id}.frame())
		}
	}
}

// write writes the queued requests until the client fails.
func (c *Client) write() {
	if err := c.out.writeTo(c.conn); err != nil {
		c.fail(c.gone(err))
	}
}

// read hands every reply to the call that waits for it, until the client fails.
func (c *Client) read() {
	in := bufio.NewReader(c.conn)
	for {
		var r reply
		body, err := readFrame(in)
		if err == nil {
			r, err = parseReply(body)
		}
		if err != nil {
			c.fail(c.gone(err))
			return
		}
		of := result{payload: r.payload}
		if r.kind == failedKind {
			of = result{err: errors.New(string(r.payload))}
		}
		c.mu.Lock()
		c.end(r.id, of)
		c.mu.Unlock()
	}
}

// end gives a call its result, if it is still under way. The mutex is held.
func (c *Client) end(id uint64, r result) {
	if waiting, ok := c.pending[id]; ok {
		delete(c.pending, id)
		waiting <- r
	}
}

// gone returns the error of calls when the connection has broken because of err.
func (c *Client) gone(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("store at %s is gone: it closed the connection (%w)", c.addr, err)
	}
	return fmt.Errorf("store at %s is gone: %w", c.addr, err)
}

// fail makes every pending and later call return err. Only the first error counts.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id := range c.pending {
		c.end(id, result{err: err})
	}
	c.out.close()
	_ = c.conn.Close()
}

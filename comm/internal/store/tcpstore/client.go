package tcpstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/gorun/gorun/comm/internal/store/kv"
	"github.com/gorun/gorun/comm/store"
)

// A Client is a [store.Store] that a [Server] keeps, reached over one TCP connection. Calls do not hold each other up.
// When the connection breaks, pending and later calls fail with an error that names the address. A Client does not
// connect again.
type Client struct {
	addr    string
	conn    net.Conn
	out     *sendQueue
	running sync.WaitGroup

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]chan result // of the calls under way
	err     error                  // why every call fails
}

// Dial connects to the server at addr, host:port. While there is no answer it tries again until ctx ends: rank 0 may
// not have started its server yet. A server with another token, or one that is not a store, is an error at once.
func Dial(ctx context.Context, addr string, cfg Config) (*Client, error) {
	creds, err := cfg.credentials()
	if err != nil {
		return nil, err
	}
	d := dialer{addr: addr, creds: creds, onRetry: cfg.OnRetry}
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &Client{addr: addr, conn: conn, out: newSendQueue(), pending: map[uint64]chan result{}}
	c.running.Go(c.write)
	c.running.Go(c.read)
	return c, nil
}

// Set implements [store.Store].
func (c *Client) Set(ctx context.Context, key string, value []byte) error {
	if err := store.CheckCall(ctx, "set", key, value); err != nil {
		return err
	}
	_, err := c.roundTrip(ctx, "set", request{kind: setKind, key: key, value: bytes.Clone(value)})
	return err
}

// Get implements [store.Store].
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	if err := store.CheckWait(ctx, key); err != nil {
		return nil, err
	}
	value, err := c.roundTrip(ctx, "get", request{kind: getKind, key: key})
	if kv.Ended(ctx, err) {
		err = &store.MissingKeysError{Keys: []string{key}, Err: ctx.Err()}
	}
	return value, err
}

// Add implements [store.Store].
func (c *Client) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := store.CheckCall(ctx, "add", key); err != nil {
		return 0, err
	}
	sum, err := c.roundTrip(ctx, "add", request{kind: addKind, key: key, n: n})
	if err != nil {
		return 0, err
	}
	p := parser{rest: sum}
	return int64(p.uint64()), p.end()
}

// CompareAndSwap implements [store.Store].
func (c *Client) CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error) {
	if err := store.CheckCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	return c.roundTrip(ctx, "compare and swap", request{kind: swapKind, key: key, old: bytes.Clone(old), value: bytes.Clone(new)})
}

// Wait implements [store.Store].
func (c *Client) Wait(ctx context.Context, keys ...string) error {
	if err := store.CheckWait(ctx, keys...); err != nil {
		return err
	}
	calls := make([]call, 0, len(keys)) // one for each key, so that the error can name those that are missing
	defer func() { c.cancel(calls...) }()
	for _, key := range keys {
		call, err := c.send(request{kind: waitKind, key: key})
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	var missing []string
	for i, call := range calls {
		_, err := c.receive(ctx, call)
		switch {
		case kv.Ended(ctx, err):
			missing = append(missing, keys[i])
		case err != nil:
			return err
		}
	}
	if missing != nil {
		return &store.MissingKeysError{Keys: missing, Err: ctx.Err()}
	}
	return nil
}

// Delete implements [store.Store].
func (c *Client) Delete(ctx context.Context, key string) (bool, error) {
	if err := store.CheckCall(ctx, "delete", key); err != nil {
		return false, err
	}
	existed, err := c.roundTrip(ctx, "delete", request{kind: deleteKind, key: key})
	return bytes.Equal(existed, []byte{1}), err
}

// Close implements [store.Store].
func (c *Client) Close() error {
	c.fail(store.ErrClosed)
	c.running.Wait()
	return nil
}

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

package tcpstore

import (
	"bytes"
	"context"
	"net"
	"sync"

	"github.com/gorun/gorun/comm/store"
	"github.com/gorun/gorun/comm/store/internal/kv"
)

// A Client is a [store.Store] that a [Server] keeps, reached over one TCP connection. Calls do not hold each other up. When
// the connection breaks, pending and later calls fail with an error that names the address. A Client does not connect
// again.
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

// Dial connects to the server at addr, host:port. While there is no answer it tries again until ctx ends: rank 0 may not
// have started its server yet. A server with another token, or one that is not a store, is an error at once.
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

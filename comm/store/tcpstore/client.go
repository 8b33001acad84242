package comm

import (
	"bytes"
	"context"
	"net"
	"sync"
)

// A TCPStore is a [Store] that a [StoreServer] keeps, reached over one TCP connection. Calls do not hold each other up: a
// Get that waits takes nothing but a line in a table. When the connection breaks, pending and later calls fail with
// an error that names the address; there is no way back but a new store.
type TCPStore struct {
	addr    string
	conn    net.Conn
	out     *storeOutbox
	running sync.WaitGroup

	mu      sync.Mutex
	lastID  uint64
	pending map[uint64]chan storeReply // each has room for its one reply
	err     error                      // why nothing works any more
	broken  chan struct{}              // closed when err is set
}

// NewTCPStore connects to the server at addr, host:port, and proves to it that it has the same token. While nobody answers
// there it tries again until ctx ends: rank 0 may not be up yet. A server with another token, or one that is
// not a store, is an error at once. Without a token it connects only to a server of this user on loopback: see [ListenStore].
func NewTCPStore(ctx context.Context, addr string, token []byte) (*TCPStore, error) {
	access, err := byToken(token)
	if err != nil {
		return nil, err
	}
	return dialTCPStore(ctx, addr, access)
}

func dialTCPStore(ctx context.Context, addr string, access storeAccess) (*TCPStore, error) {
	conn, err := dialStore(ctx, addr, access)
	if err != nil {
		return nil, err
	}
	s := &TCPStore{
		addr: addr, conn: conn, out: newStoreOutbox(),
		pending: map[uint64]chan storeReply{}, broken: make(chan struct{}),
	}
	s.running.Go(s.write)
	s.running.Go(s.read)
	return s, nil
}

// Set implements [Store].
func (s *TCPStore) Set(ctx context.Context, key string, value []byte) error {
	if err := checkStoreCall(ctx, "set", key, value); err != nil {
		return err
	}
	_, err := s.ask(ctx, "set", storeRequest{kind: storeSet, key: key, value: bytes.Clone(value)})
	return err
}

// Get implements [Store].
func (s *TCPStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkStoreWait(ctx, key); err != nil {
		return nil, err
	}
	call, err := s.send(storeRequest{kind: storeGet, key: key})
	if err != nil {
		return nil, err
	}
	defer s.abandon(call)
	value, err := s.receive(ctx, call)
	if endedBy(ctx, err) {
		return nil, &MissingKeysError{Keys: []string{key}, Err: err}
	}
	return value, err
}

// Add implements [Store].
func (s *TCPStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := checkStoreCall(ctx, "add", key); err != nil {
		return 0, err
	}
	sum, err := s.ask(ctx, "add", storeRequest{kind: storeAdd, key: key, n: n})
	if err != nil {
		return 0, err
	}
	p := storeParser{rest: sum}
	return int64(p.uint64()), p.end()
}

// CompareAndSwap implements [Store].
func (s *TCPStore) CompareAndSwap(ctx context.Context, key string, old, new []byte) ([]byte, error) {
	if err := checkStoreCall(ctx, "compare and swap", key, old, new); err != nil {
		return nil, err
	}
	return s.ask(ctx, "compare and swap", storeRequest{kind: storeSwap, key: key, old: bytes.Clone(old), value: bytes.Clone(new)})
}

// Wait implements [Store].
func (s *TCPStore) Wait(ctx context.Context, keys ...string) error {
	if err := checkStoreWait(ctx, keys...); err != nil {
		return err
	}
	calls := make([]storeCall, 0, len(keys)) // one for each key, so that the missing ones have names
	defer func() { s.abandon(calls...) }()
	for _, key := range keys {
		call, err := s.send(storeRequest{kind: storeWait, key: key})
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	var missing []string
	for i, call := range calls {
		_, err := s.receive(ctx, call)
		switch {
		case endedBy(ctx, err):
			missing = append(missing, keys[i])
		case err != nil:
			return err
		}
	}
	if missing != nil {
		return &MissingKeysError{Keys: missing, Err: ctx.Err()}
	}
	return nil
}

// Delete implements [Store].
func (s *TCPStore) Delete(ctx context.Context, key string) (bool, error) {
	if err := checkStoreCall(ctx, "delete", key); err != nil {
		return false, err
	}
	existed, err := s.ask(ctx, "delete", storeRequest{kind: storeDelete, key: key})
	return bytes.Equal(existed, []byte{1}), err
}

// Close implements [Store].
func (s *TCPStore) Close() error {
	s.fail(ErrStoreClosed)
	s.running.Wait()
	return nil
}

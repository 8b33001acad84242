package acceptor

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm/internal/shm/segment"
	"github.com/gorun/gorun/comm/internal/shm/stream"
	"github.com/gorun/gorun/comm/internal/transport"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// handshakeTimeout is how long a caller may take for each step, once it has proven that it knows the token.
const handshakeTimeout = admission.DefaultTime

// An Acceptor passes segments to other ranks of this machine, which name them by a key. It also accepts their streams. It listens on
// an abstract Unix socket, which leaves no file behind, and which only processes of this machine and network namespace can reach.
// Callers must run for the same user, and must prove that they know the token (package auth).
type Acceptor struct {
	ln    *admission.Listener
	token []byte
	log   *slog.Logger
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu       sync.Mutex
	exported map[uint64]*segment.Segment
	server   *server
	served   chan struct{} // closed once there has been a server
}

// Listen returns an acceptor.
func Listen(token []byte, log *slog.Logger) (*Acceptor, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gorun-" + cryptorand.Text()})
	if err != nil {
		return nil, err
	}
	a := &Acceptor{token: token, log: log, exported: map[uint64]*segment.Segment{}, served: make(chan struct{})}
	a.ln = admission.Listen(ln, admission.Config{Allow: sameUser, Log: log.With("port", "shared memory").Info})
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.wg.Go(func() { a.ln.Serve(&a.wg, a.accept) })
	a.wg.Go(func() { _ = stream.RegisterFences() }) // it takes many milliseconds, which the first stream need not wait for
	return a, nil
}

// Address is the address to give to [Attach].
func (a *Acceptor) Address() string { return a.ln.Addr().String() }

// Export lets other ranks attach s by key, until Remove.
func (a *Acceptor) Export(key uint64, s *segment.Segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exported[key] = s
}

// Remove ends an export. After it the acceptor does not use the segment.
func (a *Acceptor) Remove(key uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.exported, key)
}

// Close ends the acceptor, if there is one.
func (a *Acceptor) Close() error {
	if a == nil {
		return nil
	}
	a.stop()
	err := a.ln.Close()
	a.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// accept handles a connection.
func (a *Acceptor) accept(conn *admission.Conn) {
	defer func() { _ = conn.Close() }()
	switch proven, err := a.handle(conn); {
	case err == nil || a.ctx.Err() != nil:
	case proven: // the caller gets an error as well, unless it has gone
		a.log.Debug("a call for shared memory has failed", "error", err)
	default:
		conn.TurnedAway(err)
	}
}

// handle answers a caller, once it has proven that it knows the token: with a segment, or with a stream.
func (a *Acceptor) handle(caller *admission.Conn) (proven bool, err error) {
	conn := caller.NetConn().(*net.UnixConn)
	defer context.AfterFunc(a.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var r *request
	hello, err := auth.Accept(caller, a.token, func(hello []byte) (reply []byte, err error) {
		if proven = caller.Admit(); !proven {
			return nil, net.ErrClosed
		}
		_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
		if a.ctx.Err() != nil {
			return nil, net.ErrClosed
		}
		switch len(hello) {
		case keySize:
			return nil, nil
		case transport.HelloSize:
			r, reply, err = a.request(conn, hello)
			return reply, err
		}
		return nil, fmt.Errorf("hello of %d bytes", len(hello))
	})
	if r != nil {
		return proven, r.connect(conn, err)
	}
	if err != nil || len(hello) != keySize {
		return proven, err
	}
	a.mu.Lock() // keeps the segment open
	defer a.mu.Unlock()
	return proven, sendSegment(conn, a.exported[binary.LittleEndian.Uint64(hello)])
}

// keySize is the bytes of a hello that asks for a segment: its key.
const keySize = 8

// sendSegment passes s to the other side, or a size of 0 if s is nil.
func sendSegment(conn *net.UnixConn, s *segment.Segment) error {
	if s == nil {
		_, err := conn.Write(make([]byte, 8))
		return err
	}
	_, _, err := conn.WriteMsgUnix(binary.LittleEndian.AppendUint64(nil, uint64(len(s.Bytes()))), unix.UnixRights(s.FD()), nil)
	return err
}

// sameUser refuses the processes of other users.
func sameUser(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	switch {
	case credErr != nil:
		return os.NewSyscallError("getsockopt", credErr)
	case int(cred.Uid) != os.Geteuid():
		return fmt.Errorf("it runs for user %d", cred.Uid)
	}
	return nil
}

// Attach maps the segment that the acceptor at address exports by key.
func Attach(ctx context.Context, address string, token []byte, key uint64) (s *segment.Segment, err error) {
	conn, _, err := dial(ctx, address, token, binary.LittleEndian.AppendUint64(nil, key))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return receiveSegment(conn)
}

// dial waits for firstPause before its second attempt, then longer and longer, but at most for mostPause.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// dial connects to the acceptor at address and sends hello. Both sides prove that they know the token. An acceptor that has too many
// callers hangs up; then dial tries again.
func dial(ctx context.Context, address string, token, hello []byte) (*net.UnixConn, []byte, error) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		c, err := admission.Connect(ctx, new(net.Dialer).DialContext, "unix", address)
		if err != nil {
			return nil, nil, err
		}
		conn := c.(*net.UnixConn)
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		var reply []byte
		if err = sameUser(conn); err == nil { // this says more than an acceptor of another user, which hangs up
			reply, err = auth.Dial(conn, token, hello)
		}
		if stop(); err == nil {
			return conn, reply, nil
		}
		_ = conn.Close()
		if ctx.Err() != nil || !admission.HungUp(err) {
			return nil, nil, err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // jitter: ranks that were turned away together must not come back together
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// receiveSegment receives a segment from conn: a descriptor, and the size of its file.
func receiveSegment(conn *net.UnixConn) (*segment.Segment, error) {
	var data [8]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := conn.ReadMsgUnix(data[:], rights)
	fds, rightsErr := descriptorsIn(rights[:m])
	size := int(binary.LittleEndian.Uint64(data[:]))
	switch {
	case err != nil:
	case rightsErr != nil:
		err = errors.Join(errors.New("no descriptor came with it"), rightsErr)
	case n != len(data) || len(fds) == 0 || size <= 0:
		err = errors.New("it is not there, or not any more")
	case len(fds) > 1:
		err = fmt.Errorf("%d descriptors came, want one", len(fds))
	default:
		return segment.Open(fds[0], size)
	}
	for _, fd := range fds {
		_ = unix.Close(fd) // the sender has its own
	}
	return nil, err
}

// descriptorsIn returns all descriptors that came with a message. This process owns them, even if the message is wrong.
func descriptorsIn(rights []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	for i := range messages {
		some, parseErr := unix.ParseUnixRights(&messages[i])
		fds, err = append(fds, some...), errors.Join(err, parseErr)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	return fds, err
}

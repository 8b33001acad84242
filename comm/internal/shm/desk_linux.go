package shm

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

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// handshakeTimeout is how long a caller that has proven itself may take for each step.
const handshakeTimeout = admission.DefaultTime

// A Desk hands segments to other ranks of this machine, which name them by a key, and takes their calls for streams. It listens
// on an abstract Unix socket: that has no file which could be left behind, and only processes of this machine and network
// namespace reach it. Callers run for the same user, and prove that they know the token (package auth).
type Desk struct {
	ln    *admission.Listener
	token []byte
	log   *slog.Logger
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu     sync.Mutex
	offers map[uint64]*Segment
	callee *callee
	taken  chan struct{} // closed once there has been one
}

// OpenDesk returns a desk.
func OpenDesk(token []byte, log *slog.Logger) (*Desk, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gorun-" + cryptorand.Text()})
	if err != nil {
		return nil, err
	}
	d := &Desk{token: token, log: log, offers: map[uint64]*Segment{}, taken: make(chan struct{})}
	d.ln = admission.Listen(ln, admission.Config{Allow: sameUser, Log: log.With("port", "shared memory").Info})
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.wg.Go(d.serve)
	d.wg.Go(func() { _ = joinFences() }) // which takes the kernel many milliseconds, and the first stream would wait for
	return d, nil
}

// Address is where [Fetch] finds the desk.
func (d *Desk) Address() string { return d.ln.Addr().String() }

// Offer hands s to whoever asks for key, until Withdraw.
func (d *Desk) Offer(key uint64, s *Segment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offers[key] = s
}

// Withdraw ends an offer: the segment is not used for it any more.
func (d *Desk) Withdraw(key uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.offers, key)
}

// Close ends the desk, if there is one.
func (d *Desk) Close() error {
	if d == nil {
		return nil
	}
	d.stop()
	err := d.ln.Close()
	d.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (d *Desk) serve() {
	for {
		conn, err := d.ln.AcceptConn()
		if err != nil {
			return
		}
		d.wg.Go(func() {
			defer func() { _ = conn.Close() }()
			switch proven, err := d.answer(conn); {
			case err == nil || d.ctx.Err() != nil:
			case proven: // it hears of it, unless it has lost interest
				d.log.Debug("a call for shared memory has failed", "error", err)
			default:
				conn.TurnedAway(err)
			}
		})
	}
}

// answer hands what the caller asks for to it, once it has proven itself.
func (d *Desk) answer(caller *admission.Conn) (proven bool, err error) {
	conn := caller.NetConn().(*net.UnixConn)
	defer context.AfterFunc(d.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	var c *call
	hello, err := auth.Accept(caller, d.token, func(hello []byte) (reply []byte, err error) {
		if proven = caller.Admit(); !proven {
			return nil, net.ErrClosed
		}
		_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
		if d.ctx.Err() != nil {
			return nil, net.ErrClosed
		}
		switch len(hello) {
		case keySize:
			return nil, nil
		case helloSize:
			c, reply, err = d.take(conn, hello)
			return reply, err
		}
		return nil, fmt.Errorf("asks for something by %d bytes", len(hello))
	})
	if c != nil {
		return proven, c.connect(conn, err)
	}
	if err != nil || len(hello) != keySize {
		return proven, err
	}
	d.mu.Lock() // the segment stays open
	defer d.mu.Unlock()
	return proven, hand(conn, d.offers[binary.LittleEndian.Uint64(hello)])
}

// keySize is the bytes of the hello that asks for a segment.
const keySize = 8

// hand sends s, or says that there is none.
func hand(conn *net.UnixConn, s *Segment) error {
	if s == nil {
		_, err := conn.Write(make([]byte, 8))
		return err
	}
	_, _, err := conn.WriteMsgUnix(binary.LittleEndian.AppendUint64(nil, uint64(len(s.mem))), unix.UnixRights(s.fd), nil)
	return err
}

// sameUser refuses processes of other users.
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

// Fetch gets the segment of that key from the desk at address.
func Fetch(ctx context.Context, address string, token []byte, key uint64) (s *Segment, err error) {
	conn, _, err := ask(ctx, address, token, binary.LittleEndian.AppendUint64(nil, key))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return receive(conn)
}

// firstPause is how long ask waits before it calls again, mostPause the longest that it does.
const (
	firstPause = 10 * time.Millisecond
	mostPause  = time.Second
)

// ask connects to the desk at address, where both sides prove themselves, and says hello. It calls again, ever more rarely, when the
// desk hangs up on it, which may have had no room.
func ask(ctx context.Context, address string, token, hello []byte) (*net.UnixConn, []byte, error) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		c, err := admission.Connect(ctx, new(net.Dialer).DialContext, "unix", address)
		if err != nil {
			return nil, nil, err
		}
		conn := c.(*net.UnixConn)
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		var reply []byte
		if err = sameUser(conn); err == nil { // whose desk would only hang up
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
		case <-time.After(pause/2 + rand.N(pause)): // those who were sent away together are not to come back together
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// receive takes a segment off conn.
func receive(conn *net.UnixConn) (*Segment, error) {
	fd, size, err := receiveDescriptor(conn)
	if err != nil {
		return nil, err
	}
	return open(fd, size)
}

// receiveDescriptor takes a descriptor, and the size of what is behind it, off conn.
func receiveDescriptor(conn *net.UnixConn) (fd, size int, err error) {
	var data [8]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := conn.ReadMsgUnix(data[:], rights)
	fds, rightsErr := descriptorsIn(rights[:m])
	size = int(binary.LittleEndian.Uint64(data[:]))
	switch {
	case err != nil:
	case rightsErr != nil:
		err = errors.Join(errors.New("no descriptor came with it"), rightsErr)
	case n != len(data) || len(fds) == 0 || size <= 0:
		err = errors.New("it is not there, or not any more")
	case len(fds) > 1:
		err = fmt.Errorf("%d descriptors came, want one", len(fds))
	default:
		return fds[0], size, nil
	}
	for _, fd := range fds {
		_ = unix.Close(fd) // whoever sent them has its own
	}
	return -1, 0, err
}

// descriptorsIn returns all descriptors that came with a message. They are this process's now, whatever else is wrong with it.
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

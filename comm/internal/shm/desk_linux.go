package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/auth"
)

const (
	// handshakeTimeout is how long a stranger may take to prove that it is none.
	handshakeTimeout = 10 * time.Second
	// maxCallers bounds the connections that a desk has open at a time.
	maxCallers = 1024
)

// A Desk hands segments to other ranks of this machine, which name them by a key, and takes their calls for streams. It listens
// on an abstract Unix socket: that has no file which could be left behind, and only processes of this machine and network
// namespace reach it. Callers prove that they know the token (package auth), and run for the same user.
type Desk struct {
	ln    *net.UnixListener
	token []byte
	log   *slog.Logger
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	wg    sync.WaitGroup
	slots chan struct{} // one for every caller

	mu     sync.Mutex
	offers map[uint64]*Segment
	callee *callee
	taken  chan struct{} // closed once there has been one
}

// OpenDesk returns a desk.
func OpenDesk(token []byte, log *slog.Logger) (*Desk, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gorun-" + rand.Text()})
	if err != nil {
		return nil, err
	}
	d := &Desk{
		ln: ln, token: token, log: log, slots: make(chan struct{}, maxCallers), offers: map[uint64]*Segment{}, taken: make(chan struct{}),
	}
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
		conn, err := d.ln.AcceptUnix()
		if d.ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil { // most likely out of descriptors: let some go
			select {
			case <-time.After(handshakeTimeout / 20):
			case <-d.ctx.Done():
			}
			continue
		}
		select {
		case d.slots <- struct{}{}:
		case <-d.ctx.Done():
			_ = conn.Close()
			return
		}
		d.wg.Go(func() {
			if err := d.answer(conn); err != nil && d.ctx.Err() == nil {
				d.log.Info("turned away a process that asked for shared memory", "reason", err)
			}
			_ = conn.Close()
			<-d.slots
		})
	}
}

// answer hands what the caller asks for to it.
func (d *Desk) answer(conn *net.UnixConn) error {
	defer context.AfterFunc(d.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := sameUser(conn); err != nil {
		return err
	}
	var c *call
	hello, err := auth.Accept(conn, d.token, func(hello []byte) (reply []byte, err error) {
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
		return c.connect(conn, err)
	}
	if err != nil || len(hello) != keySize {
		return err
	}
	d.mu.Lock() // the segment stays open
	defer d.mu.Unlock()
	return hand(conn, d.offers[binary.LittleEndian.Uint64(hello)])
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
func sameUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
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
		return fmt.Errorf("process %d runs for user %d", cred.Pid, cred.Uid)
	}
	return nil
}

// Fetch gets the segment of that key from the desk at address.
func Fetch(ctx context.Context, address string, token []byte, key uint64) (*Segment, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UnixConn)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := auth.Dial(conn, token, binary.LittleEndian.AppendUint64(nil, key)); err != nil {
		return nil, err
	}
	return receive(conn)
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
	if err != nil {
		return -1, 0, err
	}
	size = int(binary.LittleEndian.Uint64(data[:]))
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || n != len(data) || len(messages) != 1 || size <= 0 {
		return -1, 0, errors.Join(errors.New("it is not there, or not any more"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, 0, errors.Join(errors.New("no descriptor came with it"), err)
	}
	unix.CloseOnExec(fds[0])
	return fds[0], size, nil
}

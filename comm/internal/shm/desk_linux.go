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

// A Desk hands segments to other ranks of this machine, which name them by a key. It listens on an abstract Unix socket:
// that has no file which could be left behind, and only processes of this machine and network namespace reach it.
// Callers prove that they know the token (package auth), and run for the same user.
type Desk struct {
	ln    *net.UnixListener
	token []byte
	log   *slog.Logger
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	wg    sync.WaitGroup
	slots chan struct{} // one for every caller

	mu     sync.Mutex
	offers map[uint64]*offer
}

// An offer is a segment that is there, or will be.
type offer struct {
	made    chan struct{} // closed when the rest is final
	segment *Segment      // nil: refused
	refusal error

	withdrawn bool
}

// OpenDesk returns a desk.
func OpenDesk(token []byte, log *slog.Logger) (*Desk, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "@gorun-" + rand.Text()})
	if err != nil {
		return nil, err
	}
	d := &Desk{ln: ln, token: token, log: log, slots: make(chan struct{}, maxCallers), offers: map[uint64]*offer{}}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.wg.Go(d.serve)
	return d, nil
}

// Address is where [Fetch] finds the desk.
func (d *Desk) Address() string { return d.ln.Addr().String() }

// Offer hands s to whoever asks for key, from now on until Withdraw; if s is nil, they are told refusal.
func (d *Desk) Offer(key uint64, s *Segment, refusal error) {
	o := d.offer(key)
	o.segment, o.refusal = s, refusal
	close(o.made)
}

// Withdraw ends an offer: nobody uses the segment for it any more.
func (d *Desk) Withdraw(key uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.offers[key]; o != nil {
		o.withdrawn = true
	}
	delete(d.offers, key)
}

func (d *Desk) offer(key uint64) *offer {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.offers[key] == nil {
		d.offers[key] = &offer{made: make(chan struct{})}
	}
	return d.offers[key]
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
	var o *offer
	_, err := auth.Accept(conn, d.token, func(hello []byte) ([]byte, error) {
		if len(hello) != 8 {
			return nil, fmt.Errorf("asks for a segment by %d bytes", len(hello))
		}
		_ = conn.SetDeadline(time.Time{}) // it may be early
		o = d.offer(binary.LittleEndian.Uint64(hello))
		select {
		case <-o.made:
		case <-d.ctx.Done():
			return nil, net.ErrClosed
		}
		if o.segment == nil {
			return nil, o.refusal
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(len(o.segment.mem))), nil
	})
	if err != nil {
		if o != nil { // told why
			return nil
		}
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.withdrawn {
		return errors.New("came too late")
	}
	_, _, err = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(o.segment.fd), nil)
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

// Fetch gets the segment of that key from the desk at address. It waits until it is offered.
func Fetch(ctx context.Context, address string, token []byte, key uint64) (*Segment, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	conn := c.(*net.UnixConn)
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	size, err := auth.Dial(conn, token, binary.LittleEndian.AppendUint64(nil, key))
	if err != nil {
		return nil, err
	}
	if len(size) != 8 {
		return nil, fmt.Errorf("a size of %d bytes", len(size))
	}
	fd, err := receive(conn)
	if err != nil {
		return nil, err
	}
	return open(fd, int(binary.LittleEndian.Uint64(size)))
}

// receive takes one descriptor off conn.
func receive(conn *net.UnixConn) (int, error) {
	var data [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(data[:], rights)
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errors.New("no descriptor came with the message"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("no descriptor came with the message"), err)
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

package limit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/comm"
	"github.com/gorun/gorun/comm/transport/tcp"
	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/env/addr"
	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
)

// A mesh is a rank's connections to all others: descriptors of TCP sockets that do not block, by rank; its own is -1.
type mesh struct {
	rank  int
	peers []int
}

// timeout is for connecting all ranks.
const timeout = 30 * time.Second

// connect connects this rank to all others. They find each other by package comm, and prove to each other that they are of the same job.
func connect(ctx context.Context) (*mesh, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	worker, err := env.FromOS()
	if err != nil {
		return nil, fmt.Errorf("this program runs under gorun: %w", err)
	}
	token := []byte(auth.Derive([]byte(worker.Token), "bench-comm limit"))
	host, err := addr.Facing(ctx, worker.MasterAddr)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: tcp.WithoutBBR}).Listen(ctx, "tcp", net.JoinHostPort(host.String(), "0"))
	if err != nil {
		return nil, err
	}
	listener := admission.Listen(l, admission.Config{})
	defer func() { _ = listener.Close() }()
	world, err := comm.Init(ctx, comm.WithTransport("tcp"))
	if err != nil {
		return nil, err
	}
	addresses, err := comm.AllGatherObject(ctx, world, l.Addr().String())
	if err != nil {
		return nil, err
	}
	m := &mesh{rank: worker.Rank, peers: make([]int, worker.WorldSize)}
	for i := range m.peers {
		m.peers[i] = -1
	}
	accepted := make(chan error, 1)
	go func() { accepted <- m.accept(listener, token) }()
	for peer := range m.rank {
		err = errors.Join(err, m.dial(ctx, addresses[peer], token, peer))
	}
	if err != nil {
		return nil, err
	}
	select {
	case err = <-accepted:
	case <-ctx.Done():
		return nil, fmt.Errorf("not all of ranks %d to %d have connected after %v", m.rank+1, worker.WorldSize-1, timeout)
	}
	if err != nil {
		return nil, err
	}
	if err := comm.Barrier(ctx, world); err != nil { // from here on nobody needs package comm
		return nil, err
	}
	return m, world.Close()
}

// dial connects to a lower rank.
func (m *mesh) dial(ctx context.Context, address string, token []byte, peer int) error {
	conn, err := admission.Connect(ctx, (&net.Dialer{Control: tcp.WithoutBBR}).DialContext, "tcp", address)
	if err != nil {
		return fmt.Errorf("rank %d: %w", peer, err)
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := auth.Dial(conn, token, binary.BigEndian.AppendUint32(nil, uint32(m.rank))); err != nil {
		return fmt.Errorf("rank %d: %w", peer, err)
	}
	m.peers[peer], err = descriptor(conn)
	return err
}

// accept takes the connections of all higher ranks, and turns others away.
func (m *mesh) accept(l *admission.Listener, token []byte) error {
	for missing := len(m.peers) - 1 - m.rank; missing > 0; {
		accepted, err := l.Accept()
		if err != nil {
			return err
		}
		conn := accepted.(*admission.Conn)
		hello, err := auth.Accept(conn, token, func(hello []byte) ([]byte, error) {
			if rank := rankOf(hello); rank <= m.rank || rank >= len(m.peers) || m.peers[rank] >= 0 {
				return nil, errors.New("no rank that is missing")
			}
			return nil, nil
		})
		if err != nil || !conn.Admit() {
			conn.TurnedAway(err)
			_ = conn.Close()
			continue
		}
		if m.peers[rankOf(hello)], err = descriptor(conn.NetConn()); err != nil {
			return err
		}
		_ = conn.Close()
		missing--
	}
	return nil
}

// rankOf is -1 if a hello has no rank.
func rankOf(hello []byte) int {
	if len(hello) != 4 {
		return -1
	}
	return int(binary.BigEndian.Uint32(hello))
}

// descriptor returns a new descriptor of a connection, which does not block and outlives conn.
func descriptor(conn net.Conn) (fd int, err error) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return -1, err
	}
	failed := raw.Control(func(old uintptr) { fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return -1, err
	}
	return fd, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
}

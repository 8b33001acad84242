package progress

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/proc"
)

// Socket is where the worker with this progress file answers questions.
func Socket(file string) string { return file + ".sock" }

// StacksSignal is the signal on which a worker of Python that has called gorun.progress writes its stacks: SIGRTMAX - 1, which hardly any
// program uses for itself. Those that have not may use SIGUSR1.
const StacksSignal = syscall.Signal(63)

// Stacks is where the worker with this progress file writes its stacks on a signal.
func Stacks(file string) string { return file + ".stacks" }

const (
	askStatus = "status"
	askStacks = "stacks"
)

// ErrCannotAnswer is the error of Ask for a process that cannot answer now.
var ErrCannotAnswer = errors.New("it cannot answer")

// Ask asks the worker with this progress file for its status. The error wraps fs.ErrNotExist or syscall.ECONNREFUSED if no worker
// answers questions there. canAnswer, unless it is nil, is called with the process that would answer, if that is known, and Ask does not
// wait for one that cannot.
func Ask(ctx context.Context, file string, stacks bool, canAnswer func(pid int) bool) (*Status, error) {
	conn, err := dial(ctx, Socket(file))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if pid, _, err := proc.PeerOf(conn.(*net.UnixConn)); err == nil && canAnswer != nil && !canAnswer(pid) {
		return nil, ErrCannotAnswer
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	question := askStatus
	if stacks {
		question = askStacks
	}
	if _, err := io.WriteString(conn, question+"\n"); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(conn, MaxStatus+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case len(text) > MaxStatus:
		return nil, fmt.Errorf("its status has more than %d bytes", MaxStatus)
	}
	return parse(text)
}

func parse(text []byte) (*Status, error) {
	s := &Status{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("its status cannot be read: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("its status: %w", err)
	}
	return s, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	name, done, err := shortName(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", name)
}

// maxName is how many bytes the name of a Unix socket may have on every system.
const maxName = 100

// shortName returns a name of a socket that is short enough for the system, until done is called.
func shortName(path string) (name string, done func(), err error) {
	if len(path) <= maxName || runtime.GOOS != "linux" {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

// A Server answers an agent's questions.
type Server struct {
	path     string
	listener *net.UnixListener
	answer   func(stacks bool) *Status
	serving  sync.WaitGroup
}

// Serve answers questions about the worker with this progress file until Close. One goroutine calls answer.
func Serve(file string, answer func(stacks bool) *Status) (*Server, error) {
	path := Socket(file)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a process before this one
		return nil, err
	}
	name, done, err := shortName(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
	if err != nil {
		return nil, err
	}
	proc.OwnConn(l)
	l.SetUnlinkOnClose(false) // the name may be another file's by then
	s := &Server{path: path, listener: l, answer: answer}
	s.serving.Go(s.serve)
	return s, nil
}

// Close ends the server.
func (s *Server) Close() {
	_ = os.Remove(s.path) // the agent may have removed it
	_ = s.listener.Close()
	s.serving.Wait()
}

const (
	clientTimeout = 5 * time.Second // for one client
	acceptDelay   = time.Second     // after a failure, because there are too many open files for instance
)

func (s *Server) serve() {
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptDelay)
		default:
			proc.OwnConn(conn)
			_ = conn.SetDeadline(time.Now().Add(clientTimeout))
			s.reply(conn)
			_ = conn.Close()
		}
	}
}

func (s *Server) reply(conn net.Conn) {
	line, err := bufio.NewReader(io.LimitReader(conn, 64)).ReadString('\n')
	question := strings.TrimSpace(line)
	if err != nil || question != askStatus && question != askStacks {
		return
	}
	_ = json.NewEncoder(conn).Encode(s.answer(question == askStacks)) // the client may be gone
}

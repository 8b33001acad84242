package munge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorun/gorun/env/auth"
	"github.com/gorun/gorun/env/auth/admission"
	"github.com/gorun/gorun/env/network"
)

const (
	request = "gorun 1 asks for the token of"
	answer  = "gorun 1 has the token of"

	refusedUser    = "user" // what a server answers that refuses
	refusedJob     = "job"
	refusedInvalid = "invalid"
	refusedLater   = "later"

	decoders = 4               // the most programs that strangers make a server run at a time
	callTime = 8 * time.Second // for one exchange; it includes two programs
)

// process is a random text by which a Server knows this process again.
var process = auth.NewSecret()

// A Server gives a secret to the processes of this user that ask for it. Each member of the job, such as a node, is one process: if another
// one asks in its name, that belongs to the next job of the same name, which the member has begun earlier than this process has. It has to
// wait for the next Server.
type Server struct {
	listener *admission.Listener
	job      string
	secret   string
	running  chan struct{} // has an entry for each program that runs
	ctx      context.Context
	cancel   context.CancelFunc
	all      sync.WaitGroup

	mu      sync.Mutex
	members map[string]string // the process of each member that has asked
}

// Listen returns a listener at a port of this machine, where others know it as host. It listens at all addresses if host means only
// loopback here, as a machine's own name often does, or means no address of this machine.
func Listen(ctx context.Context, host string, port int) (net.Listener, error) {
	digits := strconv.Itoa(port)
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // a name that means nothing here may mean this machine elsewhere
	for _, at := range found {
		if at = at.Unmap(); at.IsLoopback() && !network.IsLoopback(host) {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at.String(), digits))
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return l, err
		}
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", ":"+digits)
}

// Serve gives secret to the processes of this user that ask for it in the name of job, until Close. log, unless it is nil, is told of
// strangers.
func Serve(l net.Listener, job, secret string, log func(msg string, args ...any)) *Server {
	return serveWith(l, job, secret, admission.Config{Log: log})
}

func serveWith(l net.Listener, job, secret string, limits admission.Config) *Server {
	s := &Server{listener: admission.Listen(l, limits), job: job, secret: secret, running: make(chan struct{}, decoders), members: make(map[string]string)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Go(func() { s.listener.Serve(&s.all, s.serve) })
	return s
}

// Close ends the server.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.all.Wait()
	return err
}

func (s *Server) serve(conn *admission.Conn) {
	defer func() { _ = conn.Close() }() // all has been said
	if err := s.exchange(conn); err != nil {
		conn.TurnedAway(err)
	}
}

// exchange answers one caller. Only the connections of a caller that has proven itself are no longer limited.
func (s *Server) exchange(conn *admission.Conn) error {
	credential, err := readLine(conn)
	if err != nil {
		return err
	}
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	case <-s.ctx.Done():
		return net.ErrClosed
	}
	ctx, cancel := context.WithTimeout(s.ctx, callTime)
	defer cancel()
	if err := conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return err // dropped for others while it was waiting: no program is to run for it
	}
	text, err := decode(ctx, credential)
	if err != nil {
		word := refusedInvalid
		if errors.Is(err, errOtherUser) || strings.Contains(err.Error(), "Unauthorized") {
			word = refusedUser
		}
		_, _ = io.WriteString(conn, word+"\n") // the other end may have gone
		return err
	}
	nonce, refusal, err := s.check(text)
	if err != nil {
		_, _ = io.WriteString(conn, refusal+"\n")
		return err
	}
	if refusal != "" { // it is one of us
		_, err = io.WriteString(conn, refusal+"\n")
		return err
	}
	if !conn.Admit() {
		return net.ErrClosed
	}
	reply, err := encode(ctx, strings.Join([]string{answer, s.job, nonce, s.secret}, "\n"))
	if err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(callTime))
	_, err = io.WriteString(conn, reply+"\n")
	return err
}

// check returns the nonce of a request for this job, or a refusal. The refusal of a process that is no stranger comes without an error.
func (s *Server) check(text string) (nonce, refusal string, err error) {
	parts := strings.Split(text, "\n")
	if len(parts) != 5 || parts[0] != request {
		return "", refusedJob, errors.New("a credential that does not ask for a token")
	}
	job, member, asks := parts[1], parts[2], parts[3]
	if job != s.job {
		return "", refusedJob, fmt.Errorf("it is of job %.80q", job)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, ok := s.members[member]; ok && first != asks {
		return "", refusedLater, nil
	}
	if member != "" {
		s.members[member] = asks
	}
	return parts[4], "", nil
}

// readLine reads a line of bounded length.
func readLine(r io.Reader) (string, error) {
	text, err := bufio.NewReaderSize(io.LimitReader(r, maxCredential+1), maxCredential+1).ReadString('\n')
	if errors.Is(err, io.EOF) && len(text) > maxCredential {
		err = errors.New("a line that is too long")
	}
	return strings.TrimSuffix(text, "\n"), err
}

// A RefusedError says that a process answers that does not give this process the secret.
type RefusedError struct {
	Addr string // of the process
	Why  string
}

// Error returns one line.
func (e *RefusedError) Error() string { return fmt.Sprintf("no token from %s: %s", e.Addr, e.Why) }

// pauses between two attempts.
const firstPause, longestPause = 10 * time.Millisecond, 500 * time.Millisecond

// Ask returns the secret of job from the Server at addr, host:port. member is the member of the job that asks; empty: somebody who looks at the
// job asks. Ask waits for a server that does not run yet, and for a name that cannot be looked up yet, and calls waiting with the reason. The
// error is a [*RefusedError], an error of this machine's MUNGE, or the cause of ctx's end with the last reason.
func Ask(ctx context.Context, addr, job, member string, waiting func(reason string)) (secret string, err error) {
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		secret, final, err := ask(ctx, addr, job, member)
		switch {
		case err == nil:
			return secret, nil
		case ctx.Err() != nil && last != nil:
			return "", fmt.Errorf("%w: no token from %s: %w", context.Cause(ctx), addr, last)
		case final || ctx.Err() != nil:
			return "", err
		}
		last = err
		waiting(fmt.Sprintf("the token from the node of rank 0, at %s: %v", addr, err))
		network.Pause(ctx, pause)
	}
}

// ask asks once. If final is true, another attempt does not help.
func ask(ctx context.Context, addr, job, member string) (secret string, final bool, err error) {
	conn, err := admission.Connect(ctx, new(net.Dialer).DialContext, "tcp", addr)
	if err != nil {
		return "", false, cause(err)
	}
	defer func() { _ = conn.Close() }() // all has been said
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	nonce := auth.NewSecret()
	credential, err := encode(ctx, strings.Join([]string{request, job, member, process, nonce}, "\n"))
	if err != nil {
		return "", true, err
	}
	_ = conn.SetDeadline(time.Now().Add(2 * callTime)) // the server may have others to answer
	if _, err := io.WriteString(conn, credential+"\n"); err != nil {
		return "", false, cause(err)
	}
	reply, err := readLine(conn)
	if err != nil {
		return "", false, cause(err)
	}
	switch refused := func(why string) error { return &RefusedError{addr, why} }; {
	case reply == refusedUser:
		return "", true, refused("it belongs to another user's job: choose another port, as in --rdzv-endpoint=HOST:PORT")
	case reply == refusedJob:
		return "", true, refused("it belongs to another job of yours: choose another port, as in --rdzv-endpoint=HOST:PORT")
	case reply == refusedLater:
		return "", false, errors.New("the job before this one, which has the same name, has not ended there")
	case reply == refusedInvalid:
		return "", true, refused("its MUNGE does not accept this node's credential: do both machines belong to one cluster, and have the same time?")
	case !isCredential(reply):
		return "", true, refused("another service listens there: choose another port, as in --rdzv-endpoint=HOST:PORT")
	}
	text, err := decode(ctx, reply)
	if err != nil {
		return "", true, &RefusedError{addr, "its answer is not from this user: " + err.Error()}
	}
	parts := strings.Split(text, "\n")
	if len(parts) != 4 || parts[0] != answer || parts[1] != job || parts[2] != nonce || auth.CheckSecret([]byte(parts[3])) != nil {
		return "", true, &RefusedError{addr, "its answer is not one to this question"}
	}
	return parts[3], true, nil
}

// cause returns what is wrong, without the address.
func cause(err error) error {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the name %s cannot be looked up (%s)", dns.Name, dns.Err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

package launch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
	"github.com/gorun/gorun/launcher/spool"
)

// A connection is a remote shell that runs, with a proxy at its other end.
type connection struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended
	stdin  *spool.Writer
	to     *spool.Source // of stdin
	stdout *os.File
	stderr tail // complete when it has ended
}

// connect starts a remote shell.
func connect(ctx context.Context, starter starter, argv []string) (*connection, error) {
	c := &connection{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	c.cmd.SysProcAttr, c.cmd.Stderr, c.cmd.WaitDelay = attributes(), &c.stderr, restTimeout
	theirStdin, stdin, err1 := os.Pipe()
	stdout, theirStdout, err2 := os.Pipe()
	err := errors.Join(err1, err2)
	if err == nil {
		c.cmd.Stdin, c.cmd.Stdout = theirStdin, theirStdout
		err = starter.start(ctx, c.cmd)
	}
	_, _ = theirStdin.Close(), theirStdout.Close() // they may be nil
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		return nil, err
	}
	c.stdin = spool.New().Open(spool.File{
		Open: func() (io.WriteCloser, error) { return stdin, nil }, Failed: func(error) {}, Unclosed: func(error) {},
	})
	c.to, c.stdout = c.stdin.Source(nil), stdout
	go func() {
		_ = c.cmd.Wait() // ProcessState says how
		close(c.exited)
	}()
	return c, nil
}

// send sends a frame, and does not wait.
func (c *connection) send(kind frame.Kind, payload []byte) {
	c.to.Put(frame.Append(nil, kind, payload))
}

// lingerTimeout is how long a connection may stay open after its remote shell was killed. The proxy may be on this
// machine, and no child of the shell: it needs this time to kill a job that is frozen. A proxy that is frozen itself
// keeps the connection.
const lingerTimeout = 10 * time.Second

// kill ends the remote shell and what it has started here. The proxy reads an end of file, also if it is on this
// machine, and no child of the shell.
func (c *connection) kill() {
	c.stdin.Close()
	_ = c.stdout.SetReadDeadline(time.Now().Add(lingerTimeout)) // fails if nobody reads any more
	select {
	case <-c.exited:
	default:
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// endTimeout is how long a remote shell may take to end after its proxy, and its output after itself: a connection that ssh shares
// with others (ControlMaster) keeps it open.
const endTimeout = 2 * time.Second

// receive passes on what the proxy says, in turn: first its Hello, then its frames. It returns when nothing more comes, and how the
// connection has ended.
func (c *connection) receive(onHello func(frame.Hello) bool, onFrame func(frame.Kind, []byte) bool) (e ending) {
	r := bufio.NewReaderSize(c.stdout, 2*frame.MaxData)
	var hello frame.Hello
	if hello, e.err = frame.ReadHello(r); e.err == nil {
		e.hello = true
		if !onHello(hello) {
			c.kill()
		}
		for e.err == nil {
			var kind frame.Kind
			var payload []byte
			if kind, payload, e.err = frame.Read(r); e.err == nil && !onFrame(kind, payload) {
				break
			}
		}
	}
	if noise, ok := errors.AsType[*frame.NoiseError](e.err); ok {
		e.noise = string(noise.Noise)
	}
	c.stdin.Close()
	c.awaitExit()
	e.stderr = c.stderr.String()
	_ = c.stdout.Close()
	e.code = c.cmd.ProcessState.ExitCode()
	return e
}

// awaitExit waits for the end of the remote shell, which it kills if that does not come.
func (c *connection) awaitExit() {
	select {
	case <-c.exited:
	case <-time.After(endTimeout):
		c.kill()
		<-c.exited
	}
}

// A tail keeps the end of a stream.
type tail []byte

const maxTail = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	*t = bytes.Clone((*t)[max(0, len(*t)-maxTail):])
	return len(p), nil
}

func (t tail) String() string { return string(bytes.ToValidUTF8(t, []byte("\uFFFD"))) }

// restTimeout is how long stderr may stay open after the process: a process of ssh that goes on in the background has it too.
const restTimeout = 100 * time.Millisecond

package launch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
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
	stderr *tail
}

// connect starts a remote shell.
func connect(starter *starter, argv []string) (*connection, error) {
	c := &connection{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{})}
	theirStdin, ourStdin, err1 := os.Pipe()
	ourStdout, theirStdout, err2 := os.Pipe()
	ourStderr, theirStderr, err3 := os.Pipe()
	theirs := []*os.File{theirStdin, theirStdout, theirStderr}
	ours := []*os.File{ourStdin, ourStdout, ourStderr}
	err := errors.Join(err1, err2, err3)
	if err == nil {
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirStdin, theirStdout, theirStderr
		c.cmd.SysProcAttr = attributes()
		err = starter.start(c.cmd)
	}
	for _, f := range theirs {
		_ = f.Close() // they may be nil
	}
	if err != nil {
		for _, f := range ours {
			_ = f.Close()
		}
		return nil, err
	}
	c.stdin = spool.New().Open(spool.File{
		Open: func() (io.WriteCloser, error) { return ourStdin, nil }, Failed: func(error) {}, Unclosed: func(error) {},
	})
	c.to, c.stdout, c.stderr = c.stdin.Source(nil), ourStdout, newTail(ourStderr)
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
	e.stderr = c.stderr.close()
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
type tail struct {
	file *os.File
	done chan struct{}

	mu   sync.Mutex
	text []byte
}

const maxTail = 8 << 10

func newTail(file *os.File) *tail {
	t := &tail{file: file, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		buf := make([]byte, 4<<10)
		for {
			n, err := file.Read(buf)
			t.mu.Lock()
			t.text = append(t.text, buf[:n]...)
			t.text = append([]byte(nil), t.text[max(0, len(t.text)-maxTail):]...)
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return t
}

// restTimeout is how long stderr may stay open after the process: a process of ssh that goes on in the background has it too.
const restTimeout = 100 * time.Millisecond

// close returns the end of the stream. Its process has ended.
func (t *tail) close() string {
	_ = t.file.SetReadDeadline(time.Now().Add(restTimeout))
	<-t.done
	_ = t.file.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.text, []byte("\uFFFD")))
}

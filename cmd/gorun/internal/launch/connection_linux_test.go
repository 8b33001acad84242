package launch

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/launch/frame"
)

// A process that is not in the session of the remote shell, such as a proxy that is frozen, may keep its stdout open.
func TestKilledConnectionEndsThoughAnotherKeepsIt(t *testing.T) {
	for _, shell := range []string{"exec sleep 60", "exit 0"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			starter := newStarter()
			t.Cleanup(func() { close(starter) })
			c, err := connect(t.Context(), starter, []string{"sh", "-c", "setsid sh -c 'echo $$; exec sleep 60' & " + shell})
			if err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(c.stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			other, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = syscall.Kill(other, syscall.SIGKILL) })
			if shell == "exit 0" {
				<-c.exited
			}
			ended := make(chan ending, 1)
			go func() {
				ended <- c.receive(func(frame.Hello) bool { return true }, func(frame.Kind, []byte) bool { return true })
			}()
			c.kill()
			select {
			case <-ended:
			case <-time.After(3 * lingerTimeout):
				t.Error("the connection is still read")
			}
		})
	}
}

// A proxy that is not in the session of the remote shell lives on when that is killed. It has to learn of that.
func TestKilledConnectionEndsProxyElsewhere(t *testing.T) {
	t.Parallel()
	starter := newStarter()
	t.Cleanup(func() { close(starter) })
	c, err := connect(t.Context(), starter, []string{"setsid", "sh", "-c", "echo started; exec cat"}) // a shell has a session, so setsid forks
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(c.stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	<-c.exited
	c.kill()
	e := c.receive(func(frame.Hello) bool { return true }, func(frame.Kind, []byte) bool { return true })
	if errors.Is(e.err, os.ErrDeadlineExceeded) {
		t.Errorf("it read no end of file: %v", e.err)
	}
}

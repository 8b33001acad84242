package control

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestOtherUser: another user cannot connect, and one who could because the directories are open gets no answer.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		testkit.Cannot(t, "only root can become another user")
	}
	s, _, path := startServer(t, Config{})
	s.Publish(node())
	if _, err := askAs(65534, path); !errors.Is(err, syscall.EACCES) {
		t.Errorf("in a directory that is not the other's: %v", err)
	}
	for _, open := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path), path} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if answer, _ := askAs(65534, path); answer != "" {
		t.Errorf("with the right to connect, it is answered %q", answer)
	}
	if answer, err := askAs(0, path); err != nil || !strings.HasPrefix(answer, "HTTP/1.1 200") {
		t.Errorf("the user is answered %q, %v", answer, err)
	}
}

// askAs asks for the status as another user. Only one thread becomes that user, and it ends.
func askAs(uid int, path string) (answer string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		defer func() { _ = unix.Close(fd) }()
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return
		}
		if _, err = unix.Write(fd, []byte("GET /status HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			return
		}
		text := make([]byte, 100)
		var n int
		if n, err = unix.Read(fd, text); err == nil {
			answer = string(text[:n])
		}
	}()
	<-done
	return answer, err
}

package embedded

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/gorun/gorun/rendezvous"
)

// Set in a process that must not write, or map memory: the directory of its server, and what it lacks before that starts.
const fullDisk, fullEarly = "GORUN_TEST_FULL_DISK", "GORUN_TEST_FULL_EARLY"

const room = 256 << 10 // bytes that a file may have there

func TestMain(m *testing.M) {
	if dir := os.Getenv(fullDisk); dir != "" {
		if err := writeUntilFull(dir, os.Getenv(fullEarly)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if list := os.Getenv(elsewhere); list != "" {
		if err := runMembers(strings.Split(list, ",")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// TestFullDisk: etcd would end the process when it cannot write, or map its database. Its server says so instead, and closes in its time.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ early, want string }{
		"at the start": {"disk", `: file too large`},
		"later":        {"", `: file too large`},
		"memory":       {"memory", `: cannot allocate memory: an etcd needs 1 GiB of address space .*, and ulimit -v lets this process have \d+ MiB: .*`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(bounded(t), os.Args[0])
			cmd.Env = append(os.Environ(), fullDisk+"="+t.TempDir(), fullEarly+"="+c.early)
			out, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(c.want+"\nstill here\n").Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// writeUntilFull prints why its server could not start, or go on.
func writeUntilFull(dir, early string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	switch early {
	case "disk":
		err = limit()
	case "memory":
		err = limitMemory()
	}
	if err != nil {
		return err
	}
	self := rendezvous.Endpoint{Host: "127.0.0.1", Port: int(addrOf(l).Port())}
	s, err := Start(ctx, Config{Listeners: []net.Listener{l}, Self: self, Job: "full", Dir: dir})
	if early != "" {
		fmt.Printf("%v\nstill here\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := limit(); err != nil {
		return err
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{self.String()}, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	go func() {
		for large := strings.Repeat("x", 1<<20); ctx.Err() == nil; {
			_, _ = c.Put(ctx, "a", large)
		}
	}()
	select {
	case <-s.Done():
		fmt.Println(s.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.Close(ctx); err != nil && !strings.Contains(err.Error(), "has not ended within") {
		return err
	}
	fmt.Println("still here")
	return nil
}

func limit() error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room})
}

// limitMemory leaves this process half of the address space that the database of an etcd takes.
func limitMemory() error {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	most := pages*uint64(os.Getpagesize()) + 512<<20
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: most, Max: most})
}

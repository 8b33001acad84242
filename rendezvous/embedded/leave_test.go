package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/rendezvous"
)

// Set in a process that serves members of a cluster until its input ends: the endpoints, of which all but the first are its own.
const elsewhere = "GORUN_TEST_MEMBERS"

// TestLeaveSlowly: a member that is told to end while it is needed, and cannot hand leadership over in time, because the others
// are busy, is not missed.
func TestLeaveSlowly(t *testing.T) {
	t.Parallel()
	configs := three(t, nil)
	for i := range configs {
		configs[i].Job, configs[i].Dir, configs[i].TempDir = elsewhere, "", t.TempDir()
	}
	others := serveElsewhere(t, configs)
	s := serve(t, configs[0])
	put(t, client(t, nil, configs[0].Self), "a", "1") // with a client that stays
	lead(t, s, configs[1:])

	if err := others.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		leave(t, s)
	}()
	time.Sleep(2 * handover) // for which the others are busy
	if err := others.Signal(syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	<-left
	c := client(t, nil, configs[1].Self, configs[2].Self)
	putSomehow(t, c, "a", "2")
	if got := voters(t, c); len(got) != 2 {
		t.Errorf("the members are %v", got)
	}
}

// lead makes a server the leader.
func lead(t *testing.T, s *Server, others []Config) {
	t.Helper()
	for id := uint64(s.member.Server.MemberID()); s.member.Server.Lead() != id; time.Sleep(10 * time.Millisecond) {
		for _, other := range others {
			_, _ = client(t, nil, other.Self).MoveLeader(bounded(t), id) // only the leader can
		}
		if t.Context().Err() != nil {
			t.Fatal("it does not become the leader")
		}
	}
}

// serveElsewhere starts a process that serves all members but the first. The test's end ends it.
func serveElsewhere(t *testing.T, configs []Config) *os.Process {
	t.Helper()
	var endpoints []string
	for i, c := range configs {
		endpoints = append(endpoints, c.Self.String())
		if i > 0 {
			c.Listeners[0].Close()
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), elsewhere+"="+strings.Join(endpoints, ","), "TMPDIR="+t.TempDir())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the process of the other members: %v\n%s", err, out.String())
		}
	})
	return cmd.Process
}

func runMembers(endpoints []string) error {
	members, err := parseEndpoints(endpoints)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	results := make(chan error)
	for _, self := range members[1:] {
		go func() { results <- runMember(ctx, self, members) }()
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	cancel()
	for range members[1:] {
		err = errors.Join(err, <-results)
	}
	return err
}

func parseEndpoints(texts []string) ([]rendezvous.Endpoint, error) {
	list := make([]rendezvous.Endpoint, len(texts))
	for i, text := range texts {
		var err error
		if list[i], err = rendezvous.ParseEndpoint(text, 0); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// runMember serves one until ctx ends.
func runMember(ctx context.Context, self rendezvous.Endpoint, members []rendezvous.Endpoint) error {
	l, err := net.Listen("tcp", self.String())
	if err != nil {
		return err
	}
	s, err := Start(ctx, Config{Listeners: []net.Listener{l}, Self: self, Members: members, Job: elsewhere})
	if err != nil {
		return fmt.Errorf("%s: %w", self, err)
	}
	<-ctx.Done()
	return s.Close(ctx)
}

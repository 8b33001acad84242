package embedded

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Set in a process that founds a cluster and dies: its endpoint, and all others.
const dyingFounder = "GORUN_TEST_DYING_FOUNDER"

// TestFounderAt: once there has been a leader, no other server may found the cluster at an endpoint.
func TestFounderAt(t *testing.T) {
	configs := three(t, nil)
	there, absent := configs[1].Self.String(), configs[2].Self.String()
	s := newServer(configs[0])
	_ = s.config.check()
	s.founderAt(there, "one that has died while it waited")
	if got := s.founderAt(there, "another"); got != "another" {
		t.Errorf("before there is a leader: %q", got)
	}
	servers := startAll(t, configs[:2])
	if got := servers[0].founderAt(there, "another"); got != servers[1].name {
		t.Errorf("there is a leader: %q, want %q", got, servers[1].name)
	}
	if got := servers[0].founderAt(absent, "one that is late"); got != "one that is late" {
		t.Errorf("one that is late: %q", got)
	}
	for endpoint, name := range map[string]string{"a:1": "a stranger", servers[0].config.Self.String(): "itself", there: strings.Repeat("x", maxFounderName+1)} {
		if got := servers[0].founderAt(endpoint, name); got != "" {
			t.Errorf("founder at %s, of which %.20s is none: %q", endpoint, name, got)
		}
	}
}

// TestFounderLosesItsData: a founder that dies when there has been a leader, and comes back without its data, does not found the cluster a
// second time. It waits for the third server, and becomes a member again.
func TestFounderLosesItsData(t *testing.T) {
	t.Parallel()
	configs := three(t, nil)
	slices.SortFunc(configs, func(a, b Config) int { return strings.Compare(a.Self.String(), b.Self.String()) }) // the first leader first
	for _, c := range configs[1:] {
		_ = c.Listeners[0].Close()
	}
	cmd := exec.CommandContext(bounded(t), os.Args[0])
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), fmt.Sprintf("%s=%s,%s,%s,%s", dyingFounder, t.Name(), configs[1].Self, configs[0].Self, configs[2].Self))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	type result struct {
		server int
		err    error
	}
	servers, results := make([]*Server, 3), make(chan result)
	start := func(i int) {
		var err error
		servers[i], err = Start(bounded(t), configs[i])
		results <- result{i, err}
	}
	again := func(i int) {
		l, err := net.Listen("tcp", configs[i].Self.String())
		if err != nil {
			t.Fatal(err)
		}
		configs[i].Listeners = []net.Listener{l}
		go start(i)
	}
	go start(0)
	_ = cmd.Wait() // the exit code says all
	died := cmd.ProcessState.ExitCode()
	if died != diedFollowing && died != diedLeading {
		t.Fatalf("the founder: %v", cmd.ProcessState)
	}
	waits := make(chan struct{})
	var once sync.Once
	configs[1].Waiting = func(why string) {
		if strings.Contains(why, "lost its data") {
			once.Do(func() { close(waits) })
		}
	}
	again(1)
	missing := len(servers)
	for begun := false; !begun; {
		select {
		case <-waits:
			begun = true
		case r := <-results:
			missing--
			begun = r.server == 1
			if r.err != nil || begun && died != diedLeading { // who has led may have died before another one knew what is agreed on
				t.Errorf("server %d: %v; server 1, without its data, is to wait", r.server, r.err)
			}
		}
	}
	again(2)
	for range missing {
		if r := <-results; r.err != nil {
			t.Errorf("server %d: %v", r.server, r.err)
		}
	}
	for _, s := range servers {
		if s != nil {
			t.Cleanup(func() { leave(t, s) })
		}
	}
	if !t.Failed() && len(voters(t, client(t, nil, configs[0].Self))) != 3 {
		t.Error("not all are members")
	}
}

const diedFollowing, diedLeading = 7, 8 // exit codes

// dieFounding starts the first server of a list of all endpoints, which a job's name precedes. The process ends when there has been a leader.
func dieFounding(list []string) {
	members, err := parseEndpoints(list[1:])
	if err != nil {
		return
	}
	l, err := net.Listen("tcp", members[0].String())
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := newServer(Config{Listeners: []net.Listener{l}, Self: members[0], Members: members, Job: list[0]})
	go func() { _ = s.start(ctx) }()
	for ctx.Err() == nil {
		if p := s.peer.Load(); p != nil && p.hasHadLeader() {
			if p.etcd.Leader() == p.etcd.MemberID() {
				os.Exit(diedLeading)
			}
			os.Exit(diedFollowing)
		}
		runtime.Gosched()
	}
}

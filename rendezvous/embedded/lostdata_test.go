package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// startAgain starts a server at the same place, with new data unless dir has some.
func startAgain(ctx context.Context, t *testing.T, c Config, dir string) (*Server, error) {
	t.Helper()
	l, err := net.Listen("tcp", c.Self.String())
	if err != nil {
		t.Fatal(err)
	}
	c.Listeners, c.Dir = []net.Listener{l}, dir
	return Start(ctx, c)
}

// voters are the endpoints of the members that have a vote, of which each has started.
func voters(t *testing.T, c *clientv3.Client) (list []string) {
	t.Helper()
	answer, err := c.MemberList(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range answer.Members {
		if !m.IsLearner && len(m.ClientURLs) > 0 {
			list = append(list, m.Name)
		}
	}
	slices.Sort(list)
	return list
}

// TestLostData: members that lose their data one after the other, and come back, are members again, each of which may die.
func TestLostData(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string][]byte{"plain": nil, "tls": secret} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configs := three(t, credentials)
			servers := startAll(t, configs)
			all := client(t, clientTLS(t, credentials), configs[0].Self, configs[1].Self, configs[2].Self)
			put(t, all, "a", "1")
			want := voters(t, all)
			for i := range len(servers) + 1 { // the last one has been replaced before
				gone := i % len(servers)
				leave(t, servers[gone])
				putSomehow(t, all, "a", fmt.Sprint(i))
				var err error
				if servers[gone], err = startAgain(bounded(t), t, configs[gone], t.TempDir()); err != nil {
					t.Fatalf("death %d: %v", i, err)
				}
				own := client(t, clientTLS(t, credentials), configs[gone].Self)
				if got := get(t, own, "a"); got != fmt.Sprint(i) {
					t.Errorf("a is %q at the one that has come back, want %d", got, i)
				}
				if got := voters(t, own); !slices.Equal(got, want) {
					t.Errorf("after death %d the members are %v, want %v", i, got, want)
				}
				own.Close()
			}
		})
	}
}

// whenHealthy changes the members. Those that are left may have to be together for a while before etcd lets anybody do that.
func whenHealthy(t *testing.T, change func() error) {
	t.Helper()
	for {
		err := change()
		if err == nil {
			return
		}
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLostDataHalfway: whatever was left of an earlier try to become a member again is no obstacle.
func TestLostDataHalfway(t *testing.T) {
	t.Parallel()
	for name, halfway := range map[string]func(t *testing.T, c *clientv3.Client, id uint64, peer string){
		"removed": func(t *testing.T, c *clientv3.Client, id uint64, _ string) {
			whenHealthy(t, func() error {
				_, err := c.MemberRemove(bounded(t), id)
				return err
			})
		},
		"a learner": func(t *testing.T, c *clientv3.Client, id uint64, peer string) {
			whenHealthy(t, func() error {
				_, err := c.MemberRemove(bounded(t), id)
				return err
			})
			whenHealthy(t, func() error {
				_, err := c.MemberAddAsLearner(bounded(t), []string{peer})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configs := three(t, nil)
			servers := startAll(t, configs)
			c := client(t, nil, configs[0].Self)
			want := voters(t, c)
			leave(t, servers[2])
			list, err := c.MemberList(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list.Members {
				if m.Name == configs[2].Self.String() {
					halfway(t, c, m.ID, m.PeerURLs[0])
				}
			}
			if servers[2], err = startAgain(bounded(t), t, configs[2], t.TempDir()); err != nil {
				t.Fatal(err)
			}
			if got := voters(t, c); !slices.Equal(got, want) {
				t.Errorf("the members are %v, want %v", got, want)
			}
		})
	}
}

// TestLostQuorum: of two that have lost their data neither becomes a member again, nor do they found another cluster beside
// the one that still has its data.
func TestLostQuorum(t *testing.T) {
	t.Parallel()
	configs := three(t, nil)
	servers := startAll(t, configs)
	put(t, client(t, nil, configs[0].Self), "a", "1")
	leave(t, servers[0])
	leave(t, servers[1])
	ctx, cancel := context.WithCancel(t.Context())
	told, results := make(chan string, 1), make(chan error)
	for i := range 2 {
		c := configs[i]
		c.Waiting = func(reason string) {
			if strings.Contains(reason, "too few to decide") {
				select {
				case told <- reason:
				default:
				}
			}
		}
		dir := t.TempDir()
		go func() {
			s, err := startAgain(ctx, t, c, dir)
			if err == nil {
				leave(t, s)
			}
			results <- err
		}()
	}
	<-told
	<-told // both have tried, or one of them twice
	cancel()
	for range 2 {
		if err := <-results; err == nil || !strings.Contains(err.Error(), "it has lost its data, and cannot become a member again: ") {
			t.Errorf("without a quorum: %v", err)
		}
	}
	c := client(t, nil, configs[2].Self)
	if got, err := c.Get(bounded(t), "a", clientv3.WithSerializable()); err != nil || len(got.Kvs) == 0 {
		t.Errorf("what is left of the cluster: %v, %v", got, err)
	}
}

// TestReplaced: a member that was replaced while it was away is told what its data is worth.
func TestReplaced(t *testing.T) {
	t.Parallel()
	configs := three(t, nil)
	servers := startAll(t, configs)
	leave(t, servers[2])
	var err error
	if servers[2], err = startAgain(bounded(t), t, configs[2], t.TempDir()); err != nil {
		t.Fatal(err)
	}
	leave(t, servers[2])
	if _, err = startAgain(bounded(t), t, configs[2], configs[2].Dir); err == nil || !strings.Contains(err.Error(), "have replaced this one while it was away: remove its data, directory "+configs[2].Dir) {
		t.Errorf("with old data: %v", err)
	}
	if servers[2], err = startAgain(bounded(t), t, configs[2], t.TempDir()); err != nil {
		t.Fatal(err)
	}
}

// TestStopped: a member that has stopped by itself says so to the others, and lets none wait.
func TestStopped(t *testing.T) {
	t.Parallel()
	servers := startAll(t, three(t, nil))
	servers[2].member.Server.HardStop()
	for range 2 {
		var version struct{}
		if err := servers[0].get(bounded(t), servers[2].config.Self, "/version", &version); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("a member that has stopped answers: %v", err)
		}
	}
}

// TestLosesQuorum: a member that is left alone serves, and is a leader no more.
func TestLosesQuorum(t *testing.T) {
	t.Parallel()
	servers := startAll(t, three(t, nil))
	leave(t, servers[0])
	leave(t, servers[1])
	c := client(t, nil, servers[2].config.Self)
	watch := c.Watch(clientv3.WithRequireLeader(bounded(t)), "a")
	for r := range watch {
		if err := r.Err(); err != nil {
			return
		}
	}
	t.Error("a watch has ended without an error")
}

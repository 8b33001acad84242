package etcdstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/gorun/gorun/rendezvous/internal/store"
	"github.com/gorun/gorun/rendezvous/internal/testing/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	_, addr := startServer(t)
	storetest.Run(t, connected(t, addr))
}

// TestRefusals are told from what waiting may mend.
func TestRefusals(t *testing.T) {
	t.Parallel()
	_, addr := startServer(t)
	client := connected(t, addr).(*etcd).client
	for _, err := range []error{
		second(client.RoleAdd(t.Context(), "root")),
		second(client.UserAdd(t.Context(), "root", "pass")),
		second(client.UserGrantRole(t.Context(), "root", "root")),
		second(client.UserAdd(t.Context(), "nobody", "pass")),
		second(client.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ user, password, want string }{
		{"", "", "etcdserver: user name is empty"},
		{"root", "wrong", "etcdserver: authentication failed, invalid user ID or password"},
		{"nobody", "pass", "etcd does not let user nobody read and write the keys below /gorun/v1/: give it a role that may"},
		{"root", "pass", ""},
	} {
		s, err := Connect(Config{Endpoints: []string{addr}, User: c.user, Password: c.password, Prefix: "/gorun/v1/"})
		if err == nil {
			_, err = s.Read(t.Context(), store.Query{Range: store.Key("/gorun/v1/job")})
			if err := s.Close(); err != nil {
				t.Errorf("user %q: Close: %v", c.user, err)
			}
		}
		if _, refused := errors.AsType[*store.RefusedError](err); err != nil && !refused {
			t.Errorf("user %q, password %q: %v is a %[3]T, which waiting may mend", c.user, c.password, err)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("user %q, password %q: %v, want %q", c.user, c.password, err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestLostMember: whether a member of the etcd refuses connections or falls silent, another one renews a lease, and takes a
// transaction, within one request's time.
func TestLostMember(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(*relay){
		"dead":   func(way *relay) { _ = way.listener.Close(); way.set(true) },
		"silent": func(way *relay) { way.hush(true) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, addr := startServer(t)
			ways := []*relay{newRelay(t, addr), newRelay(t, addr), newRelay(t, addr)}
			s := connected(t, ways[0].addr(), ways[1].addr(), ways[2].addr())
			id, _, err := s.Keep(t.Context(), 0, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			lose(ways[0])
			for range 3 { // each goes to another member first
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				if _, _, err := s.Keep(ctx, id, time.Hour); err != nil {
					t.Errorf("the lease is not renewed: %v", err)
				}
				cancel()
			}
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				if _, err := s.Commit(ctx, store.Txn{Puts: []store.Put{{Key: "/k", Lease: id}}}); err != nil {
					t.Errorf("nothing is written: %v", err)
				}
				cancel()
			}
		})
	}
}

// TestCompactedWatch begins again, and says so, when what it waits for has been compacted while it was cut off.
func TestCompactedWatch(t *testing.T) {
	t.Parallel()
	server, addr := startServer(t)
	way := newRelay(t, addr)
	watching, writing := connected(t, way.addr()), connected(t, addr)
	ctx, cancel := context.WithCancel(t.Context())
	begins, ended := make(chan bool, 100), make(chan struct{})
	go func() {
		defer close(ended)
		watching.Watch(ctx, store.Below("/w/"), func(events []store.Event) { begins <- len(events) == 0 })
	}()
	<-begins
	way.set(true)
	var rev int64
	for range 3 {
		answer, err := writing.Commit(t.Context(), store.Txn{Puts: []store.Put{{Key: "/w/a"}}})
		if err != nil {
			t.Fatal(err)
		}
		rev = answer.Rev
	}
	if _, err := server.Server.Compact(t.Context(), &pb.CompactionRequest{Revision: rev, Physical: true}); err != nil {
		t.Fatal(err)
	}
	way.set(false)
	for !<-begins {
	}
	cancel()
	<-ended
}

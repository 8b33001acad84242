package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

// TestExplainContacts: people learn in one line what was asked, and what its end means.
func TestExplainContacts(t *testing.T) {
	t.Parallel()
	c := rendezvous.Config{Access: rendezvous.Access{Endpoints: []rendezvous.Endpoint{{Host: "a", Port: 1}}}}
	for _, k := range []struct {
		err    error
		want   string
		misuse bool
	}{
		{context.DeadlineExceeded, "a:1: its etcd has ended, or has lost its leader, before it has said who is in the job: context deadline exceeded", true},
		{errors.Join(errors.New("x"), errors.New("y")), "a:1: its etcd has ended, or has lost its leader, before it has said who is in the job: x; y", true},
		{&rendezvous.NoJobError{RunID: "j"}, `no job "j" runs there, and no other`, true},
		{&rendezvous.NoJobError{RunID: "j", Jobs: []string{"i"}}, `no job "j" runs there, only: i`, true},
		{&rendezvous.NoJobError{RunID: "j", Jobs: []string{"i", "j"}}, `job "j" has no nodes there: it has just begun, or is ending`, true},
		{context.Canceled, "context canceled", false},
		{nil, "<nil>", false},
	} {
		err := explainContacts(c, k.err)
		if _, misuse := errors.AsType[*rendezvous.MisuseError](err); fmt.Sprint(err) != k.want || misuse != k.misuse {
			t.Errorf("%v: %v, %t", k.err, err, misuse)
		}
	}
}

// TestAskedWhileItWaits: while a node waits for its etcd, it says at once whether it hosts one.
func TestAskedWhileItWaits(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	var once sync.Once
	r := Backend{}.Rendezvous(rendezvous.Config{
		Access: rendezvous.Access{Endpoints: []rendezvous.Endpoint{{Host: "127.0.0.1", Port: 1}}}, // where nothing listens
		Rules:  rendezvous.Rules{JoinTimeout: time.Hour},
		Waiting: func(reason string) {
			if reason != "" {
				once.Do(func() { close(waits) })
			}
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	joined := make(chan error, 1)
	go func() {
		_, err := r.Join(ctx, rendezvous.Node{})
		joined <- err
	}()
	<-waits
	if r.HostsAlone() {
		t.Error("it hosts an etcd that is not there")
	}
	cancel()
	if err := <-joined; err == nil {
		t.Error("it has joined")
	}
}

// TestHostsWhenThePortIsFree: a node at whose endpoint another process listens at first hosts the etcd when that process has ended.
func TestHostsWhenThePortIsFree(t *testing.T) {
	t.Parallel()
	port := testkit.ReservedPort(t)
	other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	r := Backend{}.Rendezvous(rendezvous.Config{
		Access: rendezvous.Access{Endpoints: []rendezvous.Endpoint{{Host: "localhost", Port: port}}, Hosted: true, Secret: "secret of at least sixteen bytes"},
		RunID:  "late", TempDir: t.TempDir(),
		Reserve: func(host string, port int) (rendezvous.Port, error) { return network.ReservePort(host, port) },
		Rules:   rendezvous.Rules{Min: 1, Max: 1, JoinTimeout: time.Minute, Lease: 10 * time.Second, ScaleUp: rendezvous.ScaleNever},
		Waiting: func(reason string) {
			if reason != "" {
				once.Do(func() { _ = other.Close() })
			}
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if _, _, err := r.(*lazyRendezvous).open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.HostsAlone() {
		t.Error("it hosts no etcd")
	}
	if err := r.Close(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

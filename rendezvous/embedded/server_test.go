package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
)

var secret = []byte("correct horse battery staple")

// listen returns a listener on host, and the endpoint that it is.
func listen(t testing.TB, host string) (net.Listener, rendezvous.Endpoint) {
	t.Helper()
	self := rendezvous.Endpoint{Host: host, Port: testkit.ReservedPort(t)}
	l, err := net.Listen("tcp", self.String())
	if err != nil {
		t.Fatal(err)
	}
	return l, self
}

// alone1 is the configuration of a server on loopback.
func alone1(t *testing.T) Config {
	t.Helper()
	l, self := listen(t, "127.0.0.1")
	return Config{Listeners: []net.Listener{l}, Self: self, Job: t.Name(), TempDir: t.TempDir()}
}

// bounded is for what must not take long.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// serve starts a server, which the test's end closes.
func serve(t *testing.T, config Config) *Server {
	t.Helper()
	s, err := Start(bounded(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { leave(t, s) })
	return s
}

// leave closes a server at once, and looks for what is left.
func leave(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Close")
	}
	if s.dir.temporary {
		if left, err := os.ReadDir(s.config.TempDir); err != nil || len(left) > 0 {
			t.Errorf("Close has left %v, %v", left, err)
		}
	}
	l, err := net.Listen("tcp", s.config.Listeners[0].Addr().String())
	if err != nil {
		t.Errorf("after Close: %v", err)
		return
	}
	l.Close()
}

// client connects to servers; credentials nil: without TLS.
func client(t testing.TB, credentials *tls.Config, endpoints ...rendezvous.Endpoint) *clientv3.Client {
	t.Helper()
	texts := make([]string, len(endpoints))
	for i, e := range endpoints {
		texts[i] = e.String()
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: texts, TLS: credentials, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func put(t testing.TB, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(bounded(t), key, value); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func get(t *testing.T, c *clientv3.Client, key string) string {
	t.Helper()
	r, err := c.Get(bounded(t), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

func TestAlone(t *testing.T) {
	s := serve(t, alone1(t))
	c := client(t, nil, s.config.Self)
	put(t, c, "a", "1")
	if got := get(t, c, "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err of a server that serves: %v", err)
	}
}

// TestSeveralAddresses: an endpoint may be several addresses of its machine.
func TestSeveralAddresses(t *testing.T) {
	config := alone1(t)
	l, err := net.Listen("tcp", "127.0.0.2:"+strings.TrimPrefix(config.Listeners[0].Addr().String(), "127.0.0.1:"))
	if err != nil {
		testkit.Cannot(t, "%v", err)
	}
	config.Listeners = append(config.Listeners, l)
	s := serve(t, config)
	put(t, client(t, nil, s.config.Self), "a", "1")
	other := rendezvous.Endpoint{Host: "127.0.0.2", Port: s.config.Self.Port}
	if got := get(t, client(t, nil, other), "a"); got != "1" {
		t.Errorf("a is %q at the other address", got)
	}
}

// TestLeaseOfOneSecond: a node that dies is missed as soon as etcd can.
func TestLeaseOfOneSecond(t *testing.T) {
	s := serve(t, alone1(t))
	lease, err := client(t, nil, s.config.Self).Grant(bounded(t), 1)
	if err != nil || lease.TTL != 1 {
		t.Errorf("a lease of 1 s has %v, %v", lease, err)
	}
}

// TestCloseAwaitsClients: who is connected is served until it goes.
func TestCloseAwaitsClients(t *testing.T) {
	s := serve(t, alone1(t))
	c := client(t, nil, s.config.Self)
	put(t, c, "a", "1")
	closed := make(chan error, 1)
	go func() { closed <- s.Close(bounded(t)) }()
	put(t, c, "b", "2")
	select {
	case err := <-closed:
		t.Errorf("Close has not waited: %v", err)
	default:
	}
	c.Close()
	if err := <-closed; err != nil || s.needed {
		t.Errorf("Close: %v, with clients that are connected: %t", err, s.needed)
	}
}

// TestCloseEndsStreams: Close takes as long as its context says, whatever clients are waiting for. etcd's takes seven
// seconds if one watches.
func TestCloseEndsStreams(t *testing.T) {
	for name, credentials := range map[string][]byte{"plain": nil, "tls": secret} {
		t.Run(name, func(t *testing.T) {
			config := alone1(t)
			config.Secret = credentials
			s := serve(t, config)
			silent, err := net.Dial("tcp", s.config.Self.String())
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			c := client(t, clientTLS(t, credentials), s.config.Self) // is let in after the silent one
			watch := c.Watch(bounded(t), "a", clientv3.WithCreatedNotify())
			<-watch
			lease, err := c.Grant(bounded(t), 60)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.KeepAlive(bounded(t), lease.ID); err != nil {
				t.Fatal(err)
			}
			leave(t, s) // within patience, or it is an error
		})
	}
}

func clientTLS(t testing.TB, secret []byte) *tls.Config {
	t.Helper()
	if secret == nil {
		return nil
	}
	c, err := ClientTLS(secret)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestComesBack: what is in a directory is there again, for the same server of the same job only.
func TestComesBack(t *testing.T) {
	config := alone1(t)
	config.Dir, config.Secret = filepath.Join(t.TempDir(), "new"), secret
	s := serve(t, config)
	put(t, client(t, clientTLS(t, secret), s.config.Self), "a", "1")

	again := func(job string) (*Server, error) {
		c := config
		c.Job = job
		l, _ := listen(t, "127.0.0.1")
		c.Listeners = []net.Listener{l}
		if job == config.Job {
			l.Close()
			l, err := net.Listen("tcp", config.Self.String())
			if err != nil {
				return nil, err
			}
			c.Listeners = []net.Listener{l}
		}
		return Start(bounded(t), c)
	}
	if _, err := again("another job"); err == nil || !strings.Contains(err.Error(), "is in use by another gorun") {
		t.Errorf("a directory in use: %v", err)
	}
	leave(t, s)
	if _, err := os.Stat(filepath.Join(config.Dir, "tls")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("certificates are left: %v", err)
	}
	if _, err := again("another job"); err == nil || !strings.Contains(err.Error(), "has the data of another rendezvous") {
		t.Errorf("a directory of another job: %v", err)
	}
	s, err := again(config.Job)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(t, client(t, clientTLS(t, secret), s.config.Self), "a"); got != "1" {
		t.Errorf("a is %q", got)
	}
	leave(t, s)
}

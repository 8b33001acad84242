package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
)

const secretToken = "5ecre7-0f-7he-n0de5-0f-7h15-j0b"

// loopback returns endpoints of this machine, n of them.
func loopback(t *testing.T, n int) string {
	var list []string
	for range n {
		list = append(list, testkit.ReservedAddr(t))
	}
	return strings.Join(list, ",")
}

func tokenFile(t *testing.T, token string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestInterruptWhileWaiting: whatever a node waits for, a signal ends it, and nothing is left.
func TestInterruptWhileWaiting(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts nobody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, c := range map[string]struct{ backend, endpoint, reason string }{
		"no etcd":           {"etcd", loopback(t, 1), "connection refused"},
		"no such host":      {"etcd", "nowhere.invalid", "nowhere.invalid:2379"},
		"who says nothing":  {"etcd", silent.Addr().String(), "it accepts connections but sends nothing"},
		"the other members": {"c10d", loopback(t, 3), "no other of its 3 endpoints has joined"},
		"the other nodes":   {"c10d", loopback(t, 1), "round 1: 1 of 2 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, "--nnodes=2", "--rdzv-id=j", "--rdzv-backend="+c.backend, "--rdzv-endpoint="+c.endpoint, "true")
			n.expect("waiting: .*" + c.reason)
			n.signal(syscall.SIGTERM)
			if said := n.end(143); !strings.HasSuffix(said, "\ngorun: stopped by signal 15 (SIGTERM)\n") {
				t.Errorf("it says %s", said)
			}
		})
	}
}

// TestKilledWhileWaiting: the data of its etcd goes with a node that is killed, though it has no workers yet whose guard
// would see to that.
func TestKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint="+loopback(t, 1), "true")
	n.expect("waiting: round 1: 1 of 2 nodes")
	n.signal(syscall.SIGKILL)
	n.end(-1)
}

// TestKilledWhileRemoving: a node and an etcd that are killed while they remove their temporary files leave none of them.
func TestKilledWhileRemoving(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start func() *node
		code  int // if it is not killed
	}{
		"job": {func() *node {
			n := startNode(t, "--on-failure=replace", "sh", "-c", "echo ready; exec sleep 1000")
			n.expect("ready$")
			return n
		}, 143},
		"etcd": {func() *node {
			n := startNode(t, "etcd", "--rdzv-endpoint="+loopback(t, 1))
			n.expect("serving")
			return n
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // on a busy machine, it may have removed everything before it is killed
				n := c.start()
				removeMuch(t, n)
				n.signal(syscall.SIGKILL)
				if n.endWith(-1, c.code) == -1 {
					return
				}
			}
			t.Error("it is never killed while it removes files")
		})
	}
}

// removeMuch gives n many files to remove, tells it to end, and returns when it has begun to remove them.
func removeMuch(t *testing.T, n *node) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(n.temp, "gorun-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("its temporary directories are %v, %v", found, err)
	}
	many := filepath.Join(found[0], "many")
	const dirs, files = 50, 100
	for d := range dirs {
		dir := filepath.Join(many, fmt.Sprint(d))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for f := range files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(f)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.signal(syscall.SIGTERM)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if left, _ := os.ReadDir(many); len(left) < dirs { // none when many is gone
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it removes nothing")
		}
	}
}

// TestKilledWhileBuilding: a gorun that is killed while it builds a program leaves no directory of the program behind.
func TestKilledWhileBuilding(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go": "#!/bin/sh\necho building >&2\nexec sleep 1000\n", "main.go": "package main\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := startAs(t, 2*patience, "/bin/bash", "bash", "-c", fmt.Sprintf("PATH=%s:$PATH exec -a gorun %s %[1]s/main.go", dir, exe))
	n.expect("building$")
	n.signal(syscall.SIGKILL)
	n.end(-1)
}

// TestWrongToken: the node that has it is told so, whether it is to host a part of the etcd or not; the others go on.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			t.Parallel()
			endpoints, release := loopback(t, members), newRelease(t)
			start := func(token string) *node {
				return startNode(t, "--nnodes=2", "--rdzv-backend=embedded", "--rdzv-endpoint="+endpoints, "--rdzv-token-file="+tokenFile(t, token),
					"sh", "-c", release.await())
			}
			first := start(secretToken)
			first.expect("waiting: ")
			wrong, second := start("another-"+secretToken), start(secretToken)
			if said := wrong.end(2); !strings.Contains(said, "its certificate is not trusted (") || !strings.HasSuffix(said, ": give every node the same --rdzv-token-file, or ca_cert= in --rdzv-conf\n") {
				t.Errorf("with a wrong token it says %s", said)
			}
			release.create(t)
			first.end(0)
			second.end(0)
		})
	}
}

// TestHostLeaves: the node that hosts the etcd says what that means, and so do those that lose it.
func TestHostLeaves(t *testing.T) {
	t.Parallel()
	endpoint := loopback(t, 1)
	start := func() *node {
		return startNode(t, "--nnodes=1:2", "--rdzv-backend=embedded", "--rdzv-endpoint="+endpoint, "--rdzv-conf=ttl=5,last_call_timeout=20", "sh", "-c", "echo one of $WORLD_SIZE; exec sleep 1000")
	}
	host := start()
	host.expect("waiting: round 1")
	other := start()
	host.expect("one of 2$")
	other.expect("one of 2$")
	host.signal(syscall.SIGTERM)
	other.expect("starting the workers again: ")
	other.expect("one of 1$")
	if said := host.end(143); !strings.Contains(said, "the rendezvous ends with this node, which hosts it: ") {
		t.Errorf("the host says %s", said)
	}
	other.expect(`etcd cannot be used: 127\.0\.0\.1:\d+: connection refused: .* \(rounds go on, but no new one can begin\)$`)
	other.signal(syscall.SIGTERM)
	other.end(143)
}

// TestNobodyElse: a node listens at the address of its endpoint only, strangers get nowhere, and the secret is nowhere to be read.
func TestNobodyElse(t *testing.T) {
	endpoint, file := loopback(t, 1), tokenFile(t, secretToken)
	flags := []string{"--nnodes=1:2", "--rdzv-backend=embedded", "--rdzv-endpoint=" + endpoint, "--rdzv-token-file=" + file, "--rdzv-conf=last_call_timeout=0"}
	t.Setenv("LOGLEVEL", "debug")
	n := startNode(t, append(flags, "sh", "-c", "env; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; echo ready; exec sleep 1000")...)
	n.expect("ready$")
	addrs := listening(t, n.cmd.Process.Pid)
	if !slices.Contains(addrs, netip.MustParseAddrPort(endpoint)) {
		t.Errorf("it listens at %v, want %s", addrs, endpoint)
	}
	for _, addr := range addrs { // where the other agents call this one, too
		if !addr.Addr().IsLoopback() {
			t.Errorf("it listens at %s", addr)
		}
		for name, connect := range strangers {
			if err := connect(t, addr.String()); err == nil {
				t.Errorf("%s is let in at %s", name, addr)
			}
		}
	}
	n.signal(syscall.SIGTERM)
	said := n.end(143)
	said += startNode(t, append(flags, "--dry-run", "true")...).end(0)
	if strings.Contains(said, secretToken) {
		t.Errorf("the secret is in what it says, or a worker sees: %s", said)
	}
}

// strangers are those without a secret; nil says that they have come in.
var strangers = map[string]func(t *testing.T, endpoint string) error{
	"HTTP": func(_ *testing.T, endpoint string) error {
		answer, err := http.Get("http://" + endpoint + "/version")
		if err != nil {
			return err
		}
		return fmt.Errorf("it is told %s: %w", answer.Status, answer.Body.Close())
	},
	"TLS without a certificate": func(_ *testing.T, endpoint string) error {
		c, err := tls.Dial("tcp", endpoint, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // nothing was written
		_ = c.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadFull(c, make([]byte, 1)) // in TLS 1.3 the server's refusal comes with what it would say
		return err
	},
	"an etcd client": func(t *testing.T, endpoint string) error { return ask(t, endpoint, nil) },
	"an etcd client with TLS": func(t *testing.T, endpoint string) error {
		return ask(t, endpoint, &tls.Config{InsecureSkipVerify: true})
	},
}

func ask(t *testing.T, endpoint string, credentials *tls.Config) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, TLS: credentials, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = c.Get(ctx, "", clientv3.WithPrefix())
	return err
}

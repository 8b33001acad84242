package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/hosttest"
)

// TestProxies: nodes, and the members of the etcd that they host, use no proxy, whatever the environment says; workers have the variables.
// net/http never uses one for loopback, so the nodes have another address.
func TestProxies(t *testing.T) {
	host := hosttest.New(t, 1).Host(0)
	var proxy net.Listener
	var err error
	host.Do(func() { proxy, err = net.Listen("tcp", "127.0.0.1:0") })
	if err != nil {
		t.Fatal(err)
	}
	used := make(chan error, 1)
	go func() {
		_, err := proxy.Accept()
		_ = proxy.Close()
		used <- err
	}()
	url := "http://" + proxy.Addr().String()
	for _, v := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(v, url)
	}
	t.Setenv("NO_PROXY", "example.org")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	onHost := func(cmd *exec.Cmd) (err error) {
		host.Do(func() { err = cmd.Start() })
		return err
	}
	args := []string{
		"gorun", "--nnodes=3", "--rdzv-backend=embedded", "--rdzv-id=proxies", "--rdzv-token-file=" + tokenFile(t, secretToken),
		fmt.Sprintf("--rdzv-endpoint=%[1]s:29400,%[1]s:29410,%[1]s:29420", host.Addr), // all ports of the host are ours
		"sh", "-c", "echo https_proxy is $https_proxy and NO_PROXY is $NO_PROXY",
	}
	var nodes []*node
	for range 3 {
		nodes = append(nodes, startBy(t, onHost, 2*patience, exe, args...))
	}
	for _, n := range nodes {
		if said, want := n.end(0), "https_proxy is "+url+" and NO_PROXY is example.org"; !strings.Contains(said, want) {
			t.Errorf("want %q; a node says\n%s", want, said)
		}
	}
	_ = proxy.Close()
	if err := <-used; !errors.Is(err, net.ErrClosed) {
		t.Errorf("somebody has used the proxy: %v", err)
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/agent/status"
)

// pageOf returns the address of a node's status page, as the node says it.
func pageOf(n *node) string {
	n.t.Helper()
	n.expect("status page at http://")
	return regexp.MustCompile(`http://([^/]+)/`).FindStringSubmatch(n.said.Text())[1]
}

// followPage calls each with what a stream of a status page sends, until it returns true.
func followPage(t *testing.T, url string, each func(data []byte) bool) {
	t.Helper()
	answer, err := (&http.Client{Timeout: patience}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && each([]byte(data)) {
			return
		}
	}
	t.Fatalf("%s: %s, and it ends: %v", url, answer.Status, lines.Err())
}

// TestStatusPageOfNodes: the page of any node shows all nodes, and what their workers write.
func TestStatusPageOfNodes(t *testing.T) {
	t.Parallel()
	args := []string{"--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=embedded", "--rdzv-endpoint=" + loopback(t, 1)}
	worker := []string{"sh", "-c", "echo rank $RANK works; exec sleep 100"}
	zero := startNode(t, append(append(args, "--node-rank=0"), worker...)...)
	one := startNode(t, append(append(args, "--node-rank=1", "--status-addr=:0"), worker...)...)
	addr := pageOf(one)
	followPage(t, "http://"+addr+"/events", func(data []byte) bool {
		var d struct{ Job status.Job }
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		running := 0
		for i, n := range d.Job.Nodes {
			if n.Round == nil || n.Round.NodeRank != i || n.Problem != "" {
				return false
			}
			for _, w := range n.Workers {
				if w.State == status.WorkerRunning {
					running++
				}
			}
		}
		return running == 4
	})
	followPage(t, "http://"+addr+"/logs?rank=0", func(data []byte) bool { return strings.Contains(string(data), `"text":"rank 0 works"`) })
	zero.signal(syscall.SIGTERM)
	one.signal(syscall.SIGTERM)
	zero.end(143)
	one.end(143)
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("the page outlives its node")
	}
}

// TestStatusPageElsewhere: a page that other machines can reach asks for the token in the user's file.
func TestStatusPageElsewhere(t *testing.T) {
	own, ok := ownAddress()
	if !ok {
		t.Skip("no address but loopback")
	}
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	n := startNode(t, "--status-addr="+net.JoinHostPort(own, "0"), "sleep", "100")
	addr := pageOf(n)
	if !strings.HasPrefix(addr, own+":") || !strings.Contains(n.said.Text(), "; log in with the token in "+config) {
		t.Errorf("it says: %s", n.said.Text())
	}
	token, err := os.ReadFile(filepath.Join(config, "gorun", "status-page-token"))
	if err != nil {
		t.Fatal(err)
	}
	for bearer, want := range map[string]int{"": 401, "Bearer x": 401, "Bearer " + strings.TrimSpace(string(token)): 200} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", bearer)
		answer, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("%.10q: %s, want %d", bearer, answer.Status, want)
		}
	}
	n.signal(syscall.SIGTERM)
	if said := n.end(143); strings.Contains(said, strings.TrimSpace(string(token))) {
		t.Error("the token is in the log")
	}
}

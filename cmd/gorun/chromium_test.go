package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/testing/testkit"
)

var pictureFile = flag.String("picture", "", "where TestStatusPageInBrowser saves a picture of the page")

// shownAfter is how long the browser shows the page before it prints the page. It prints it when everything has been loaded, and the proxy
// takes that long for one image.
const shownAfter = 2 * time.Second

// probe says how wide the page is, and how wide the window.
const probe = `setInterval(() => { document.body.dataset.width = document.documentElement.scrollWidth + " in " + innerWidth; }, 100);`

// inBrowser serves a status page as the browser of these tests needs it.
func inBrowser(t *testing.T, addr string) *httptest.Server {
	page := &url.URL{Scheme: "http", Host: addr}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(page) }}
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/" {
			return nil
		}
		text, err := io.ReadAll(r.Body)
		page := strings.Replace(string(text), "</body>", `<script src="/probe.js" defer></script><img src="/wait.png" alt="" hidden></body>`, 1)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(page)), int64(len(page))
		r.Header.Set("Content-Length", fmt.Sprint(len(page)))
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", proxy)
	mux.HandleFunc("/probe.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, probe)
	})
	mux.HandleFunc("/wait.png", func(http.ResponseWriter, *http.Request) { time.Sleep(shownAfter) })
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// browse runs Chromium without a window, and returns what it prints.
func browse(t *testing.T, chromium string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // on a busy machine it takes half a minute to start
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir=" + t.TempDir()}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}
	return string(text)
}

// TestStatusPageInBrowser: what people see of a job in which a worker has failed. What the job writes is text, not HTML.
func TestStatusPageInBrowser(t *testing.T) {
	testkit.Nightly(t, "a browser takes seconds to start")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		testkit.Cannot(t, "needs chromium")
	}
	n := startNode(t, "--rdzv-id=train17", "--nproc-per-node=4", "--max-restarts=3", "--status-addr=:0", "bash", "-c",
		`echo "<b id=hostile>rank $RANK</b>"; for i in {1..18}; do echo "epoch $i, loss 0.$((90 - 4 * i))"; done; [ $GORUN_ROUND$RANK != 12 ] || { sleep 1; exit 3; }; echo ready; printf '\r1%% of <it>\r2%% of <it>'; exec sleep 100`)
	addr := pageOf(n)
	n.expect("restart 1 of 3")
	for range 4 {
		n.expect("ready$")
	}
	page := inBrowser(t, addr)
	dom := browse(t, chromium, "--window-size=360,800", "--dump-dom", page.URL)
	for _, want := range []string{
		`>train17: bash</h1>`, `round 2 of 1 node and 4 ranks, 1 of 3 restarts used`, `✖ last failure \d+s ago, in round 1 on [^<]*exit code 3`,
		`aria-label="rank 3: running"`, `<rect class="round" [^>]*><title>round 1 begins`, `<path class="failure"`, `● running</td>`,
		`&lt;b id=hostile&gt;rank 0&lt;/b&gt;`, `\n  2% of &lt;it&gt;</pre>`, `data-live="yes"`,
	} {
		if !regexp.MustCompile(want).MatchString(dom) {
			t.Errorf("the page does not show %s", want)
		}
	}
	if strings.Contains(dom, "<b id=") {
		t.Error("what the job writes is HTML")
	}
	var wide, window int
	if _, width, found := strings.Cut(dom, `data-width="`); !found {
		t.Error("the probe has not run")
	} else if _, err := fmt.Sscanf(width, "%d in %d", &wide, &window); err != nil || wide > window {
		t.Errorf("the page is %d wide in a window of %d: %v", wide, window, err)
	}
	if t.Failed() {
		t.Logf("the page:\n%s", dom)
	}
	if *pictureFile != "" {
		to, err := filepath.Abs(*pictureFile)
		if err != nil {
			t.Fatal(err)
		}
		browse(t, chromium, "--window-size=900,820", "--screenshot="+to, page.URL)
	}
	n.signal(syscall.SIGTERM)
	n.end(143)
}

package statuspage

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

const (
	testToken = "0123456789abcdef of the page"
	hostile   = `"</script><img src=x onerror=alert(1)>` + "\n\ndata: x"
)

// A bed is a node with a page.
type bed struct {
	t      *testing.T
	agent  *control.Server
	page   *Server
	recent *launcher.Recent
	addr   string
	node   status.Node
}

func newBed(t *testing.T, change func(*Config)) *bed {
	t.Helper()
	written := launcher.NewRecent(2)
	b := &bed{t: t, recent: written, agent: control.New(control.Config{Recent: written, Ask: func(context.Context, string) *progress.Status {
		return &progress.Status{Collectives: &progress.Collectives{PerSecond: 2, SentPerSecond: 3e9, ReceivedPerSecond: 1e9}}
	}})}
	c := Config{
		Own: control.NewClient(func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go b.agent.ServeConn(there)
			return here, nil
		}),
		Recent: written, RunID: "train17", Version: "0.1.0", Token: testToken, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&c)
	}
	b.page = New(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = l.Addr().String()
	b.page.Serve(l)
	t.Cleanup(func() { b.page.Close(); b.agent.Close() })
	now := time.Now()
	b.node = status.Node{
		Version: status.Version, Gorun: "0.1.0", Job: "train17", Program: hostile, ID: "a/7", Host: "a", Pid: os.Getpid(), Started: now, At: now,
		State: status.Running, Since: now, Why: "the workers are started", MaxRestarts: 3,
		Round: &status.Round{ID: 1, Nodes: 1, WorldSize: 2, Started: now},
		Workers: []status.Worker{
			{Rank: 0, LocalRank: 0, Pid: 100, State: status.WorkerRunning, Started: now, ProgressFile: "none"}, {Rank: 1, LocalRank: 1, Pid: 101, State: status.WorkerRunning, Started: now},
		},
	}
	b.event(status.KindRoundFormed, nil, "round 1 begins")
	b.publish()
	return b
}

func (b *bed) event(kind status.Kind, rank *int, text string) {
	e := status.Entry{Time: time.Now(), Event: kind, Rank: rank, Text: text}
	if kind == status.KindWorkerFailed {
		e.Cause = death.BySignal
	}
	b.node.Events = status.Add(b.node.Events, e)
	b.page.Emit(e)
}

func (b *bed) publish() {
	n := b.node
	n.Workers = slices.Clone(n.Workers)
	b.agent.Publish(&n)
	b.page.Publish(&n)
}

// ask sends a request. Its headers are pairs of names and values; Host is one.
func (b *bed) ask(method, path, body string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.addr+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
		if pair[0] == "Host" {
			r.Host = pair[1]
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 20 * time.Second}
	answer, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer, string(text)
}

const elsewhere = "node0.example:8080"

// TestAccess: this user needs no token on loopback. Others, and those who come by another name of this machine, need it.
func TestAccess(t *testing.T) {
	b := newBed(t, nil)
	cookie := cookieName + "=" + access{testToken}.session()
	for _, c := range []struct {
		name, method, path string
		headers            []string
		want               int
	}{
		{"the user", "GET", "/", nil, 200},
		{"the user, by name", "GET", "/page.js", []string{"Host", "localhost:80"}, 200},
		{"HEAD", "HEAD", "/", nil, 200},
		{"HEAD of a stream", "HEAD", "/events", nil, 200},
		{"another name (DNS rebinding)", "GET", "/", []string{"Host", elsewhere}, 401},
		{"another name, metrics", "GET", "/metrics", []string{"Host", elsewhere}, 401},
		{"another name, events", "GET", "/events", []string{"Host", elsewhere}, 401},
		{"another name, output", "GET", "/logs?rank=0", []string{"Host", elsewhere}, 401},
		{"the style of the login page", "GET", "/page.css", []string{"Host", elsewhere}, 200},
		{"the token", "GET", "/", []string{"Host", elsewhere, "Authorization", "Bearer " + testToken}, 200},
		{"a wrong token", "GET", "/", []string{"Host", elsewhere, "Authorization", "Bearer " + testToken + "x"}, 401},
		{"no token", "GET", "/", []string{"Host", elsewhere, "Authorization", "Bearer "}, 401},
		{"the token in the URL", "GET", "/?token=" + url.QueryEscape(testToken), []string{"Host", elsewhere}, 401},
		{"the cookie", "GET", "/", []string{"Host", elsewhere, "Cookie", cookie}, 200},
		{"the token as a cookie", "GET", "/", []string{"Host", elsewhere, "Cookie", cookieName + "=" + url.QueryEscape(testToken)}, 401},
		{"a change", "POST", "/", nil, 405},
		{"a command", "POST", "/stop", nil, 404},
		{"a deletion", "DELETE", "/", nil, 405},
		{"another file", "GET", "/assets/page.js", nil, 404},
		{"no rank", "GET", "/logs", nil, 400},
		{"no such rank", "GET", "/logs?rank=7", nil, 404},
	} {
		answer, text := b.ask(c.method, c.path, "", c.headers...)
		if answer.StatusCode != c.want {
			t.Errorf("%s: %d, want %d", c.name, answer.StatusCode, c.want)
		}
		if strings.Contains(text, testToken) || answer.StatusCode == 401 && !strings.Contains(text, `action="/login"`) {
			t.Errorf("%s: %.300q", c.name, text)
		}
		if csp := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", c.name, csp)
		}
	}
	long, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+b.addr, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	long.Header.Set("X", strings.Repeat("x", 4*maxHeader))
	if answer, err := http.DefaultClient.Do(long); err == nil { // the connection may also break
		if _ = answer.Body.Close(); answer.StatusCode != 431 {
			t.Errorf("a long header: %d", answer.StatusCode)
		}
	}
	if answer, _ := b.ask("GET", "/", "a body"); answer.StatusCode != 400 {
		t.Errorf("a request with a body: %d", answer.StatusCode)
	}
}

// TestCrossSite: a page of another site gets nothing, whatever the browser knows of its user; a link from there leads to the page.
func TestCrossSite(t *testing.T) {
	b := newBed(t, nil)
	own := "http://" + b.addr
	for _, c := range []struct {
		name    string
		headers []string
		want    map[string]int // by path; 403 for those that are not in it
	}{
		{"this page", []string{"Sec-Fetch-Site", "same-origin"}, map[string]int{"/": 200, "/page.css": 200, "/page.js": 200, "/metrics": 200, "/events": 200, "/logs?rank=7": 404, "/login": 404}},
		{"this page, an old browser", []string{"Origin", own}, map[string]int{"/": 200, "/page.css": 200, "/page.js": 200, "/metrics": 200, "/events": 200, "/logs?rank=7": 404, "/login": 404}},
		{"a link", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, map[string]int{"/": 200}},
		{"a frame", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, nil},
		{"a script", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example"}, nil},
		{"an image", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, nil},
		{"another port", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors", "Origin", "http://127.0.0.1:1"}, nil},
		{"a script, an old browser", []string{"Origin", "https://evil.example"}, nil},
		{"a file, an old browser", []string{"Origin", "null"}, nil},
		{"with the token", []string{"Authorization", "Bearer " + testToken, "Origin", "https://evil.example"}, nil},
	} {
		for _, path := range []string{"/", "/page.css", "/page.js", "/metrics", "/events", "/logs?rank=7", "/login"} {
			want, ok := c.want[path]
			if !ok {
				want = 403
			}
			method := "GET"
			if path == "/events" {
				method = "HEAD" // a stream does not end
			}
			if answer, text := b.ask(method, path, "", c.headers...); answer.StatusCode != want || want == 403 && method == "GET" && !strings.Contains(text, "another site") {
				t.Errorf("%s: %s: %d %.100q, want %d", c.name, path, answer.StatusCode, text, want)
			}
		}
		if answer, _ := b.ask("POST", "/login", "", c.headers...); (answer.StatusCode == 403) != (c.want["/login"] == 0) {
			t.Errorf("%s: a login: %d", c.name, answer.StatusCode)
		}
	}
}

// TestNoToken: without a token, nobody but the user is let in, whatever the request says.
func TestNoToken(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Token = "" })
	if answer, _ := b.ask("GET", "/", ""); answer.StatusCode != 200 {
		t.Errorf("the user: %d", answer.StatusCode)
	}
	for _, headers := range [][]string{{"Authorization", "Bearer "}, {"Cookie", cookieName + "=" + access{}.session()}, {"Cookie", cookieName + "="}} {
		if answer, _ := b.ask("GET", "/", "", append(headers, "Host", elsewhere)...); answer.StatusCode != 403 {
			t.Errorf("%q: %d", headers, answer.StatusCode)
		}
	}
	if answer, _ := b.ask("POST", "/login", "token=", "Content-Type", "application/x-www-form-urlencoded"); answer.StatusCode != 403 {
		t.Errorf("an empty token: %d", answer.StatusCode)
	}
}

// TestLogin: the form gives a cookie that scripts cannot read, and which lets its owner in.
func TestLogin(t *testing.T) {
	b := newBed(t, nil)
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Host", elsewhere}
	for _, body := range []string{"token=wrong", "", "token=" + strings.Repeat("x", 1<<20)} {
		if answer, _ := b.ask("POST", "/login", body, form...); answer.StatusCode != 401 || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%.20q: %d", body, answer.StatusCode)
		}
	}
	answer, _ := b.ask("POST", "/login", url.Values{"token": {testToken}}.Encode(), form...)
	cookie := answer.Header.Get("Set-Cookie")
	if answer.StatusCode != 303 || answer.Header.Get("Location") != "/" || !strings.Contains(cookie, "; HttpOnly; SameSite=Strict") || strings.Contains(cookie, testToken) {
		t.Fatalf("%d, %q", answer.StatusCode, cookie)
	}
	value, _, _ := strings.Cut(cookie, ";")
	if answer, _ := b.ask("GET", "/", "", "Host", elsewhere, "Cookie", value); answer.StatusCode != 200 {
		t.Errorf("with the cookie: %d", answer.StatusCode)
	}
}

// TestOtherMachine: a name of loopback helps nobody who is elsewhere.
func TestOtherMachine(t *testing.T) {
	r := httptest.NewRequest("GET", "http://localhost/", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 80})))
	if (access{testToken}).allows(r) {
		t.Error("let in")
	}
}

// A follower reads the data of server-sent events.
type follower struct {
	t     *testing.T
	lines *bufio.Reader
	body  io.Closer
}

func (b *bed) follow(path string) *follower {
	b.t.Helper()
	answer, err := http.Get("http://" + b.addr + path)
	if err != nil {
		b.t.Fatal(err)
	}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("%s: %s", path, answer.Status)
	}
	b.t.Cleanup(func() { _ = answer.Body.Close() })
	return &follower{b.t, bufio.NewReader(answer.Body), answer.Body}
}

func (f *follower) next() string {
	f.t.Helper()
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			f.t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return data
		}
		if line != "\n" && !strings.HasPrefix(line, ":") {
			f.t.Fatalf("a line that is no data: %q", line)
		}
	}
}

func (f *follower) document() (d document) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(f.next()), &d); err != nil {
		f.t.Fatal(err)
	}
	return d
}

// TestEvents: everybody who looks gets the job, and each change of it, also if its names are hostile.
func TestEvents(t *testing.T) {
	b := newBed(t, nil)
	first, second := b.follow("/events"), b.follow("/events")
	for _, f := range []*follower{first, second} {
		d := f.document()
		if len(d.Job.Nodes) != 1 || d.Job.Nodes[0].Program != hostile || len(d.Job.Nodes[0].Workers) != 2 || d.Self != "a/7" || len(d.Events) != 1 || d.Events[0].Host != "a" {
			t.Fatalf("%+v", d)
		}
	}
	for i := range 50 { // they come at once, and are sent together
		b.node.Workers[0].Restarts = i
		b.publish()
	}
	b.node.Workers[0].State, b.node.Workers[0].Exit = status.WorkerFailed, &status.Exit{Code: 3, Text: "exit code 3", At: time.Now()}
	b.event(status.KindWorkerFailed, new(0), "exit code 3")
	b.publish()
	for _, f := range []*follower{first, second} {
		documents := 0
		for d := f.document(); d.Job.Nodes[0].Workers[0].State != status.WorkerFailed; d = f.document() {
			if documents++; documents > 10 {
				t.Fatal("a document for each of many changes")
			}
		}
	}
	_, _ = first.body.Close(), second.body.Close()
	deadline := time.Now().Add(10 * time.Second)
	for runs := true; runs; {
		b.page.job.mu.Lock()
		runs = b.page.job.runs
		b.page.job.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("the node is asked though nobody looks")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestOutput: the last lines of a rank, and those that come.
func TestOutput(t *testing.T) {
	b := newBed(t, nil)
	b.recent.Add(1, 1, []byte("first "+hostile+"\n"))
	b.recent.Add(0, 1, []byte("of another rank\n"))
	f := b.follow("/logs?rank=1")
	var lines []control.Line
	for len(lines) < 4 {
		var more []control.Line
		if err := json.Unmarshal([]byte(f.next()), &more); err != nil {
			t.Fatal(err)
		}
		if lines == nil {
			b.recent.Add(1, 2, []byte("second\n"))
		}
		lines = append(lines, more...)
	}
	if last := lines[3]; lines[0].Rank != 1 || !strings.HasPrefix(lines[0].Text, `first "</script>`) || last.Text != "second" || last.Stream != "stderr" {
		t.Errorf("%+v", lines)
	}
}

// TestLines: of many lines, the last ones are kept, and it is said that some are missing.
func TestLines(t *testing.T) {
	var l lineList
	for i := range maxLines + 5 {
		l.add(control.Line{Rank: i})
	}
	var lines []control.Line
	if err := json.Unmarshal(l.take(), &lines); err != nil || len(lines) != maxLines || lines[0].Rank != 5 || !lines[0].Missed || lines[1].Missed {
		t.Errorf("%d lines, the first %+v, %v", len(lines), lines[0], err)
	}
	if l.take() != nil {
		t.Error("lines are sent twice")
	}
}

// TestTooMany: the number of streams is bounded, and their end makes room.
func TestTooMany(t *testing.T) {
	b := newBed(t, nil)
	var all []*follower
	for range maxStreams {
		all = append(all, b.follow("/events"))
	}
	if answer, _ := b.ask("GET", "/events", ""); answer.StatusCode != 503 {
		t.Errorf("one more: %d", answer.StatusCode)
	}
	_ = all[0].body.Close()
	deadline := time.Now().Add(10 * time.Second)
	for len(b.page.streams) == maxStreams {
		if time.Now().After(deadline) {
			t.Fatal("no room after the end of a stream")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestOthers: a node that has answered once, and then does not, is shown as it was, with the reason.
func TestOthers(t *testing.T) {
	b := newBed(t, func(c *Config) {
		c.Endpoint = "node0:29400"
		c.Contacts = func(context.Context) (rendezvous.Contacts, error) {
			return rendezvous.Contacts{Secret: []byte(testToken), Agents: []rendezvous.Contact{
				{Key: "k", Node: rendezvous.Node{ID: "b/8", Host: "b"}, Addr: "127.0.0.1:1"}, {Key: "own", Node: rendezvous.Node{ID: "a/7", Host: "a"}},
			}}, nil
		}
	})
	before := others{nodes: []status.Node{{ID: "b/8", Host: "b", State: status.Running, Round: &status.Round{ID: 1, NodeRank: 1, Nodes: 2}}}}
	got := b.page.job.askOthers(t.Context(), before, "a/7")
	if len(got.nodes) != 1 || got.nodes[0].State != status.Running || got.nodes[0].Round == nil || got.nodes[0].Problem == "" {
		t.Errorf("%+v", got.nodes)
	}
	f := b.follow("/events")
	d := f.document()
	for len(d.Job.Nodes) < 2 {
		d = f.document()
	}
	if d.Job.Nodes[0].ID != "a/7" || d.Job.Nodes[1].Host != "b" || d.Job.Nodes[1].Problem == "" {
		t.Errorf("%+v", d.Job.Nodes)
	}
}

// TestMetrics: their names and values.
func TestMetrics(t *testing.T) {
	b := newBed(t, nil)
	b.recent.Add(0, 1, []byte("12345"))
	b.node.Workers[1].State, b.node.Workers[1].Exit = status.WorkerFailed, &status.Exit{Code: 137, Signal: 9, Text: "killed", At: time.Now()}
	b.event(status.KindWorkerFailed, new(1), "killed")
	b.publish()
	b.node.Round = &status.Round{ID: 2, Nodes: 1, WorldSize: 2, Restarts: 1}
	b.node.Workers[1] = status.Worker{Rank: 1, LocalRank: 1, Pid: 102, State: status.WorkerRunning}
	b.event(status.KindRoundFormed, nil, "round 2 begins")
	b.publish()
	problems, err := testutil.CollectAndLint(b.page.metrics)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	answer, text := b.ask("GET", "/metrics", "")
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("Content-Type %q", answer.Header.Get("Content-Type"))
	}
	for _, want := range []string{
		`gorun_build_info{goversion="go`, "\ngorun_round 2\n", "\ngorun_nodes 1\n", "\ngorun_ranks 2\n", "\ngorun_restarts 1\n", "\ngorun_max_restarts 3\n",
		`gorun_state{state="running"} 1`, `gorun_state{state="ended"} 0`, `gorun_workers{state="running"} 2`, `gorun_workers{state="failed"} 0`,
		`gorun_worker_failures_total{cause="signal"} 1`, `gorun_worker_failures_total{cause="hang"} 0`, "\ngorun_last_recovery_seconds ",
		`gorun_output_bytes_total{stream="stdout"} 5`, "\ngorun_start_time_seconds 1", `gorun_job_info{job="train17",program="`,
		`gorun_worker_collectives_per_second{rank="0"} 2`, `gorun_worker_collective_sent_bytes_per_second{rank="0"} 3e+09`,
		`gorun_worker_collective_received_bytes_per_second{rank="0"} 1e+09`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestPeerUser: the kernel says whose connection it is.
func TestPeerUser(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	from, to := netip.MustParseAddrPort(conn.LocalAddr().String()), netip.MustParseAddrPort(conn.RemoteAddr().String())
	if uid, err := peerUser(from, to); err != nil || uid != os.Geteuid() {
		t.Errorf("user %d, %v", uid, err)
	}
	if uid, err := peerUser(to, netip.AddrPortFrom(to.Addr(), 1)); err == nil {
		t.Errorf("user %d has a connection that there is not", uid)
	}
}

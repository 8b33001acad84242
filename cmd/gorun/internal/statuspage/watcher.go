package statuspage

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/cmd/gorun/internal/jobs"
	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

const (
	minPause    = 500 * time.Millisecond // between two documents
	period      = 2 * time.Second        // in which this node is asked what its workers do
	eachPause   = 100 * time.Millisecond // for each other node, between two rounds of questions
	contactsAge = 15 * time.Second       // after which the etcd is asked again which nodes there are
	shownEvents = 200
)

// A document is what the page shows.
type document struct {
	Now    time.Time  `json:"now"`  // by the clock of the node that serves the page
	Self   string     `json:"self"` // the node that serves the page
	Job    status.Job `json:"job"`  // without the events of its nodes
	Events []event    `json:"events"`
}

// An event is an event of the job, and where it was seen.
type event struct {
	status.Event
	Host string `json:"host"`
}

// A watcher keeps a document up to date while somebody looks.
type watcher struct {
	config  Config
	ctx     context.Context
	changed chan struct{} // has an entry if this node has changed
	all     sync.WaitGroup

	mu      sync.Mutex
	viewers map[chan []byte]bool // each has at most the newest document
	latest  []byte               // nil: none, or nobody looks
	agents  []jobs.Agent         // of other nodes, that have answered
	runs    bool
}

func newWatcher(ctx context.Context, c Config) *watcher {
	return &watcher{config: c, ctx: ctx, changed: make(chan struct{}, 1), viewers: make(map[chan []byte]bool)}
}

func (w *watcher) wait() { w.all.Wait() }

// change says that this node has changed.
func (w *watcher) change() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// view returns a channel with the newest document, and what ends that.
func (w *watcher) view() (documents <-chan []byte, end func()) {
	c := make(chan []byte, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.latest != nil {
		c <- w.latest
	}
	w.viewers[c] = true
	if !w.runs && w.ctx.Err() == nil {
		w.runs = true
		w.all.Go(w.run)
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.viewers, c)
		w.change() // run may end
	}
}

// agentOf returns the agent of the node with a rank; nil: it is not known.
func (w *watcher) agentOf(ctx context.Context, rank int) *control.Client {
	has := func(n *status.Node) bool {
		return slices.ContainsFunc(n.Workers, func(w status.Worker) bool { return w.Rank == rank })
	}
	if n, err := w.config.Own.Status(ctx); err == nil && has(n) {
		return w.config.Own
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.agents {
		if has(&w.agents[i].Node) {
			return w.agents[i].Client
		}
	}
	return nil
}

// others is what the other nodes say, or said last.
type others struct {
	contacts rendezvous.Contacts
	at       time.Time // when the etcd said so
	nodes    []status.Node
	agents   []jobs.Agent
}

// run makes documents until nobody looks.
func (w *watcher) run() {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var known others
	var asked time.Time
	answers := make(chan others, 1)
	asking := false
	for {
		own := jobs.Ask(ctx, w.config.Own, status.Node{ID: "this node", Host: "this machine"}).Node
		if w.config.Contacts != nil && !asking && time.Since(asked) >= max(period, time.Duration(len(known.nodes))*eachPause) {
			asking, asked = true, time.Now()
			before := known
			w.all.Go(func() { answers <- w.askOthers(ctx, before, own.ID) })
		}
		if !w.publish(own, known) {
			return
		}
		pause := time.NewTimer(period)
		select {
		case known = <-answers:
			asking = false
		case <-w.changed:
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
		network.Pause(ctx, minPause)
	}
}

// askOthers asks the nodes other than self. Of one that does not answer it returns what it said before, and why it does not answer.
func (w *watcher) askOthers(ctx context.Context, before others, self string) others {
	now := before
	if time.Since(before.at) > contactsAge {
		if contacts, err := w.config.Contacts(ctx); err == nil {
			now.contacts, now.at = contacts, time.Now()
		}
	}
	ask := now.contacts
	ask.Agents = slices.DeleteFunc(slices.Clone(ask.Agents), func(c rendezvous.Contact) bool { return c.Node.ID == self })
	job, agents := jobs.Remote(ctx, ask, w.config.RunID, w.config.Endpoint)
	now.nodes, now.agents = job.Nodes, agents
	for i, n := range now.nodes {
		last := slices.IndexFunc(before.nodes, func(b status.Node) bool { return b.ID == n.ID })
		if n.Problem != "" && last >= 0 {
			now.nodes[i] = before.nodes[last]
			now.nodes[i].Problem = n.Problem
		}
	}
	return now
}

// publish passes on a document, if it is new. It returns false, and the watcher is to end, if nobody looks.
func (w *watcher) publish(own status.Node, known others) bool {
	own.Job, own.Endpoint = w.config.RunID, w.config.Endpoint
	text := encode(append([]status.Node{own}, known.nodes...), own.ID)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.agents = known.agents
	if len(w.viewers) == 0 || w.ctx.Err() != nil {
		w.runs, w.latest = false, nil
		return false
	}
	if bytes.Equal(withoutNow(text), withoutNow(w.latest)) {
		return true
	}
	w.latest = text
	for c := range w.viewers {
		select {
		case <-c: // the newer one takes its place
		default:
		}
		c <- text
	}
	return true
}

// encode makes a document of what nodes say.
func encode(nodes []status.Node, self string) []byte {
	d := document{Now: time.Now().UTC(), Self: self, Job: status.Job{Version: status.Version}, Events: []event{}}
	for _, j := range status.Jobs(nodes) { // it is one
		d.Job.ID, d.Job.Endpoint = j.ID, j.Endpoint
		d.Job.Nodes = append(d.Job.Nodes, j.Nodes...)
	}
	for _, e := range d.Job.Events(shownEvents) {
		d.Events = append(d.Events, event{e.Event, e.Node.Host})
	}
	for i := range d.Job.Nodes {
		d.Job.Nodes[i].Events, d.Job.Nodes[i].At = nil, time.Time{}
	}
	text, err := json.Marshal(d)
	if err != nil { // a time from another node that JSON cannot express
		text, _ = json.Marshal(document{Now: d.Now, Self: self, Events: []event{}})
	}
	return text
}

// withoutNow returns a document without its time, which is its first field.
func withoutNow(text []byte) []byte {
	_, rest, _ := bytes.Cut(text, []byte(","))
	return rest
}

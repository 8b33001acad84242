package statuspage

import (
	"context"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gorun/gorun/agent/hang"
	"github.com/gorun/gorun/agent/status"
	"github.com/gorun/gorun/cmd/gorun/internal/control"
	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/env/progress"
	"github.com/gorun/gorun/launcher"
)

var descs []*prometheus.Desc // all of them

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("gorun_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// The metrics of a node.
var (
	descBuild    = desc("build_info", "Version of gorun and of Go. The value is 1.", "version", "goversion")
	descJob      = desc("job_info", "Name of the job, and its program. The value is 1.", "job", "program")
	descStart    = desc("start_time_seconds", "When gorun started on this node, in seconds since 1970.")
	descState    = desc("state", "What this node does: 1 for the present state, else 0.", "state")
	descRound    = desc("round", "Number of the round; 0: there was none.")
	descNodes    = desc("nodes", "Nodes of the round.")
	descRanks    = desc("ranks", "Ranks of the round.")
	descRestarts = desc("restarts", "Restarts of --max-restarts that the job has used.")
	descMax      = desc("max_restarts", "Restarts that the job may use (--max-restarts).")
	descWorkers  = desc("workers", "Workers of this node, by state.", "state")
	descFailures = desc("worker_failures_total", "Failures of workers of this node, by cause.", "cause")
	descRecovery = desc("last_recovery_seconds", "Time from the first failure of a worker of this node in a round until the next round began here, the last time.")
	descProgress = desc("worker_last_progress_time_seconds", "When a worker last said that it makes progress, in seconds since 1970.", "rank")
	descCalls    = desc("worker_collectives_per_second", "How many collectives a worker takes part in.", "rank")
	descSent     = desc("worker_collective_sent_bytes_per_second", "How much a worker sends in collectives.", "rank")
	descReceived = desc("worker_collective_received_bytes_per_second", "How much a worker receives in collectives.", "rank")
	descOutput   = desc("output_bytes_total", "Bytes that the workers of this node have written.", "stream")
)

var (
	states       = []status.State{status.Joining, status.Running, status.Diagnosing, status.Stopping, status.Finished, status.Ended}
	workerStates = []status.WorkerState{status.WorkerRunning, status.WorkerSucceeded, status.WorkerFailed, status.WorkerStopped}
)

// metrics implements prometheus.Collector.
type metrics struct {
	version string
	recent  *launcher.Recent
	own     *control.Client // of the agent of this node

	mu       sync.Mutex
	node     *status.Node // the newest snapshot; nil: none
	failures map[death.Cause]int
	failed   time.Time     // of the first failure since the last round began; zero: there is none
	recovery time.Duration // zero: there was none
}

func newMetrics(c Config) *metrics {
	return &metrics{version: c.Version, recent: c.Recent, own: c.Own, failures: make(map[death.Cause]int)}
}

// observe takes a snapshot.
func (m *metrics) observe(n *status.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node = n
}

// count takes something that has happened.
func (m *metrics) count(e status.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Event == status.KindWorkerFailed:
		m.failures[e.Cause]++
		if m.failed.IsZero() {
			m.failed = e.Time
		}
	case e.Event == status.KindRoundFormed && !m.failed.IsZero():
		m.recovery, m.failed = e.Time.Sub(m.failed), time.Time{}
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	gauge(descBuild, 1, m.version, runtime.Version())
	count(descOutput, float64(m.recent.Bytes(launcher.Stdout)), "stdout")
	count(descOutput, float64(m.recent.Bytes(launcher.Stderr)), "stderr")
	for rank, c := range m.collectives() {
		gauge(descCalls, c.PerSecond, rank)
		gauge(descSent, c.SentPerSecond, rank)
		gauge(descReceived, c.ReceivedPerSecond, rank)
	}
	m.mu.Lock() // not while a file is looked at: the agent publishes what it does here, and must not wait
	n, failures, recovery := m.node, maps.Clone(m.failures), m.recovery
	m.mu.Unlock()
	for _, cause := range death.FailureCauses() {
		count(descFailures, float64(failures[cause]), string(cause))
	}
	if recovery > 0 {
		gauge(descRecovery, recovery.Seconds())
	}
	if n == nil {
		return
	}
	gauge(descJob, 1, n.Job, n.Program)
	gauge(descStart, seconds(n.Started))
	for _, s := range states {
		value := 0.0
		if s == n.State {
			value = 1
		}
		gauge(descState, value, string(s))
	}
	gauge(descMax, float64(n.MaxRestarts))
	round := status.Round{}
	if n.Round != nil {
		round = *n.Round
	}
	gauge(descRound, float64(round.ID))
	gauge(descNodes, float64(round.Nodes))
	gauge(descRanks, float64(round.WorldSize))
	gauge(descRestarts, float64(round.Restarts))
	workers := make(map[status.WorkerState]int)
	for _, w := range n.Workers {
		workers[w.State]++
		if at := hang.Stamp(w.ProgressFile); w.State == status.WorkerRunning && !at.IsZero() {
			gauge(descProgress, seconds(at), strconv.Itoa(w.Rank))
		}
	}
	for _, s := range workerStates {
		gauge(descWorkers, float64(workers[s]), string(s))
	}
}

// askTime limits how long the workers of this node may take to answer how much they send and receive.
const askTime = 2 * time.Second

// collectives is what the workers of this node move, by rank.
func (m *metrics) collectives() map[string]*progress.Collectives {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	list := make(map[string]*progress.Collectives)
	n, err := m.own.Status(ctx)
	if err != nil { // the agent has just begun, or is about to end
		return list
	}
	for _, w := range n.Workers {
		if w.Collectives != nil {
			list[strconv.Itoa(w.Rank)] = w.Collectives
		}
	}
	return list
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

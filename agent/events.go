package agent

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// A result is what is known when the job has ended on this node.
type result struct {
	err        error
	begun      time.Time         // the job
	started    time.Time         // its last gang
	ended      time.Time         // the job
	round      *rendezvous.Round // the last one with workers in it; nil: none
	exits      []launcher.Exit   // of the last gang
	errorFiles map[int]ErrorFile // of those that failed, by rank
}

// The shape of torchelastic's events.
type (
	statusEvent struct {
		Name      string   `json:"name"`
		Source    string   `json:"source"`
		Timestamp int64    `json:"timestamp"` // Unix time in milliseconds
		Metadata  metadata `json:"metadata"`
	}
	metadata struct {
		RunID        string  `json:"run_id"`
		GlobalRank   *int    `json:"global_rank"` // null: the agent
		GroupRank    *int    `json:"group_rank"`  // null: there never was a round
		WorkerID     *string `json:"worker_id"`   // its pid
		Role         string  `json:"role"`
		Hostname     string  `json:"hostname"`
		State        string  `json:"state"`
		TotalRunTime int64   `json:"total_run_time"` // of the job, in seconds
		Backend      string  `json:"rdzv_backend"`
		RawError     *string `json:"raw_error"`
		Metadata     string  `json:"metadata"` // details as JSON
		Restarts     int     `json:"agent_restarts"`
		DurationMs   int64   `json:"duration_ms"` // of the job, or from the gang's start to the worker's end
	}
	details struct {
		GroupWorldSize int    `json:"group_world_size"`
		EntryPoint     string `json:"entry_point"`
		*workerDetails
	}
	workerDetails struct {
		LocalRank     int `json:"local_rank"`
		RoleRank      int `json:"role_rank"`
		RoleWorldSize int `json:"role_world_size"`
		ExitCode      int `json:"exit_code"`
		WorkerPid     int `json:"worker_pid"`
	}
)

// events returns one line of JSON for each worker of the last gang, in the order of their ends, and one for the agent.
func events(c Config, end result) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	e := newEvent(c, end)
	if end.round != nil {
		for _, x := range end.exits {
			_ = enc.Encode(e.ofWorker(c, end, x)) // nothing in it can fail, nor can the buffer
		}
	}
	_ = enc.Encode(e)
	return b.Bytes()
}

// newEvent returns the agent's event.
func newEvent(c Config, end result) statusEvent {
	e := statusEvent{Source: "AGENT", Timestamp: end.ended.UnixMilli(), Metadata: metadata{
		RunID: c.RunID, Role: c.Node.Role, Hostname: c.Node.Host, Backend: c.Backend,
		TotalRunTime: int64(end.ended.Sub(end.begun).Seconds()), DurationMs: end.ended.Sub(end.begun).Milliseconds(),
	}}
	d := details{EntryPoint: c.Program}
	if end.round != nil {
		e.Metadata.GroupRank, d.GroupWorldSize = &end.round.Self, end.round.Size
		e.Metadata.Restarts = end.round.Restarts
	}
	e.Metadata.Metadata = asJSON(d)
	if end.err == nil {
		return e.withState("SUCCEEDED")
	}
	e.Metadata.RawError = new(end.err.Error())
	return e.withState("FAILED")
}

// ofWorker turns the agent's event into a worker's.
func (e statusEvent) ofWorker(c Config, end result, x launcher.Exit) statusEvent {
	place := end.round.Place
	e.Source = "WORKER"
	e.Metadata.GlobalRank, e.Metadata.WorkerID = &x.Rank, new(strconv.Itoa(x.Pid))
	e.Metadata.RawError = nil
	e.Metadata.DurationMs = max(0, x.At.Sub(end.started).Milliseconds())
	e.Metadata.Metadata = asJSON(details{end.round.Size, c.Program, &workerDetails{
		LocalRank: x.LocalRank, RoleRank: place.FirstRoleRank + x.LocalRank, RoleWorldSize: place.RoleWorldSize,
		ExitCode: x.ReturnCode(), WorkerPid: x.Pid}})
	switch {
	case x.Stopped:
		return e.withState("TERMINATED") // by the agent
	case !x.Failed():
		return e.withState("SUCCEEDED")
	}
	e.Metadata.RawError = new(rawError(x, end.errorFiles[x.Rank]))
	return e.withState("FAILED")
}

func (e statusEvent) withState(state string) statusEvent {
	e.Name, e.Metadata.State = "torchelastic.worker.status."+state, state
	return e
}

// rawError returns the worker's own document, or one in the same shape.
func rawError(x launcher.Exit, r ErrorFile) string {
	if r.Document != nil {
		return string(r.Document)
	}
	return asJSON(map[string]string{"message": x.String()})
}

func asJSON(v any) string {
	text, _ := json.Marshal(v) // of strings and numbers: cannot fail
	return string(text)
}

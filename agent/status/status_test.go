package status

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func example() Node {
	return Node{
		Version: Version, Gorun: "0.1.0", Job: "train17", Endpoint: "node0:29400", Program: "./train", ID: "a/7", Host: "a", Pid: 7, Started: noon, At: noon,
		State: Running, Since: noon, Why: "the workers are started",
		Waiting: &Waiting{For: "round 2", Since: noon},
		Round:   &Round{ID: 1, Nodes: 2, WorldSize: 2, Started: noon},
		Workers: []Worker{{Pid: 8, State: WorkerFailed, Started: noon, Exit: &Exit{Code: 3, Text: "exit code 3", At: noon}}},
		Failure: &Failure{Round: 1, Text: "exit code 3", At: noon},
		Events:  []Event{{At: noon, Kind: KindWorkerFailed, Rank: new(0), Text: "exit code 3"}},
	}
}

// TestDecode: a document is what its node has sent, or is refused.
func TestDecode(t *testing.T) {
	text, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(text)
	if want := example(); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for change, want := range map[string]string{
		`"version":2`:                                 `whose status has version 2, and this gorun reads version 1`,
		`"host":""`:                                   "it lacks the job, the host, the pid or the state",
		`"pid":-1`:                                    "it lacks",
		`"workers":[{"rank":1,"local_rank":3}]`:       "worker 0 has local rank 3",
		`"round":{"nodes":1,"node_rank":1}`:           "node 1 of 1",
		`"why":"` + strings.Repeat("x", 70_000) + `"`: "a text of 70000 bytes",
		`"pid":"x"`:                                   "not a status",
	} {
		var document map[string]any
		if err := errors.Join(json.Unmarshal(text, &document), json.Unmarshal([]byte("{"+change+"}"), &document)); err != nil {
			t.Fatal(err)
		}
		changed, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(changed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", change, err, want)
		}
	}
	if _, err := Decode([]byte(strings.Repeat(" ", MaxSize+1))); err == nil {
		t.Error("read a document without bounds")
	}
}

// FuzzDecode: what is not refused is within bounds, and means the same when it is sent on.
func FuzzDecode(f *testing.F) {
	text, err := json.Marshal(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"job":"x","host":"y","pid":1,"state":"running"}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := Decode(text)
		if err != nil {
			return
		}
		for i, w := range n.Workers {
			if w.LocalRank != i || w.Rank < 0 || len(w.Doing) > maxText {
				t.Fatalf("worker %d is %+v", i, w)
			}
		}
		again, err := json.Marshal(n)
		if err != nil {
			return // a year that JSON cannot express
		}
		if _, err := Decode(again); err != nil && len(again) <= MaxSize {
			t.Fatal(err)
		}
	})
}

// TestJobs: nodes of one job come together in the order of their ranks, also if another job has the same ID.
func TestJobs(t *testing.T) {
	node := func(job, endpoint, host string, rank, round int) Node {
		n := Node{Job: job, Endpoint: endpoint, Host: host, Pid: 100 + rank, State: Running}
		if round > 0 {
			n.Round = &Round{ID: round, NodeRank: rank, Nodes: 3}
		}
		return n
	}
	jobs := Jobs([]Node{
		node("b", "x:1", "late", 9, 0), node("b", "x:1", "second", 1, 4), node("b", "x:1", "first", 0, 3),
		node("a", "", "alone", 0, 1), node("b", "y:1", "other", 0, 1), node("a", "", "too", 5, 1),
	})
	var got []string
	for _, j := range jobs {
		text := j.ID + "@" + j.Endpoint + ":"
		for _, n := range j.Nodes {
			text += " " + n.Host
		}
		got = append(got, text)
	}
	want := []string{"a@: alone", "a@: too", "b@x:1: first second late", "b@y:1: other"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if newest := jobs[2].Newest(); newest.Host != "second" {
		t.Errorf("%s knows the newest round", newest.Host)
	}
	if names := Names(jobs); names != "a, b" {
		t.Errorf("names %q", names)
	}
	if found := Find(jobs, "b", 0); len(found) != 2 {
		t.Errorf("%d jobs with the name b", len(found))
	}
	if found := Find(jobs, "105", 105); len(found) != 1 || found[0].Nodes[0].Host != "too" {
		t.Errorf("by pid: %+v", found)
	}
	if found := Find(jobs, "c", 0); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// TestRoundText: a round says how large it is.
func TestRoundText(t *testing.T) {
	for want, r := range map[string]*Round{
		"round 1 of 1 node and 1 rank":   {ID: 1, Nodes: 1, WorldSize: 1},
		"round 2 of 2 nodes and 8 ranks": {ID: 2, Nodes: 2, WorldSize: 8},
	} {
		if r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
	}
}

// TestEvents: events of all nodes are in the order of their times. What several nodes report is there once.
func TestEvents(t *testing.T) {
	at := func(s int, text string) Event {
		return Event{At: noon.Add(time.Duration(s) * time.Second), Kind: KindRoundOver, Text: text}
	}
	j := Job{Nodes: []Node{
		{Host: "a", Events: []Event{at(1, "one"), at(5, "three"), at(60, "one")}, Failure: &Failure{At: noon}},
		{Host: "b", Events: []Event{at(2, "one"), at(3, "two"), at(5, "three")}, Failure: &Failure{At: noon.Add(1), Rank: 4}},
	}}
	var got []string
	for _, s := range j.Events(4) {
		got = append(got, s.Node.Host+" "+s.Text)
	}
	if want := []string{"a one", "b two", "a three", "a one"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := j.Events(2); len(got) != 2 || got[1].Text != "one" {
		t.Errorf("the last two are %+v", got)
	}
	if f, n := j.Failure(); f.Rank != 4 || n.Host != "b" {
		t.Errorf("the last failure is %+v on %s", f, n.Host)
	}
	var list []Event
	for i := range 3 * MaxEvents {
		before := list
		if list = Add(list, Entry{Time: at(i, "").At, Event: KindRoundOver}); len(before) > 0 && !before[0].At.Equal(noon.Add(time.Duration(max(0, i-MaxEvents))*time.Second)) {
			t.Fatalf("Add changes what it gets: %v", before[0])
		}
	}
	if len(list) != MaxEvents || !list[0].At.Equal(noon.Add(2*MaxEvents*time.Second)) {
		t.Errorf("%d events are kept, the first of %v", len(list), list[0].At)
	}
}

// TestPage: docs/status.md describes every field, every state and every event.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "status.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for _, s := range []State{Joining, Running, Diagnosing, Stopping, Finished, Ended} {
		want = append(want, string(s))
	}
	for _, s := range []WorkerState{WorkerRunning, WorkerSucceeded, WorkerFailed, WorkerStopped} {
		want = append(want, string(s))
	}
	for _, k := range []Kind{KindRoundFormed, KindRoundOver, KindWorkerFailed, KindWorkerHangs, KindRoundRevoked, KindCommanded, KindInterrupted, KindStartFailed, KindBarrierPassed} {
		want = append(want, string(k))
	}
	for _, of := range []any{Job{}, Node{}, Waiting{}, Round{}, Worker{}, Exit{}, Failure{}, Event{}} {
		for f := range reflect.TypeOf(of).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
				want = append(want, name)
			}
		}
	}
	for _, name := range want {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/status.md does not describe `%s`", name)
		}
	}
}

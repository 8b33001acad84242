package eventlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/agent/status"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A story is the snapshots of a node, one after the other.
type story struct {
	now  status.Node
	all  []*status.Node
	pids int
}

func newStory() *story {
	s := &story{now: status.Node{Job: "train17", Host: "a", ID: "a/7", Started: noon, Program: "./train", Gorun: "0.1.0"}, pids: 100}
	s.publish()
	return s
}

func (s *story) publish() {
	n := s.now
	n.Workers = slices.Clone(n.Workers)
	s.all = append(s.all, &n)
}

func (s *story) event(kind status.Kind, rank *int, text string) {
	s.now.Events = status.Add(s.now.Events, status.Event{At: noon.Add(time.Duration(len(s.all)) * time.Second), Kind: kind, Rank: rank, Text: text})
}

// round begins a round, in which the workers with these local ranks survive.
func (s *story) round(id, workers int, survivors ...int) {
	before := s.now.Workers
	s.now.Round = &status.Round{ID: id, Nodes: 1, WorldSize: workers, Restarts: id - 1}
	s.now.Workers = nil
	for local := range workers {
		w := status.Worker{Rank: local, LocalRank: local, State: status.WorkerRunning, Started: noon}
		if slices.Contains(survivors, local) {
			w.Pid = before[local].Pid
		} else {
			s.pids++
			w.Pid = s.pids
		}
		s.now.Workers = append(s.now.Workers, w)
	}
	s.event(status.KindRoundFormed, nil, "round begins")
	s.publish()
}

func (s *story) exit(local, code, signal int, failed bool) {
	s.now.Workers = slices.Clone(s.now.Workers)
	s.now.Workers[local].Exit = &status.Exit{Code: code, Signal: signal, Text: "ended", At: noon}
	if failed {
		s.event(status.KindWorkerFailed, &local, "ended")
	}
	s.publish()
}

// lines shows what has happened, one event in each line.
func (s *story) lines() string {
	var text []string
	var before *status.Node
	for _, n := range s.all {
		for _, e := range Changes(before, n) {
			line := fmt.Sprintf("%d %s", e.Round, e.Event)
			if e.Rank != nil {
				line += fmt.Sprintf(" rank %d", *e.Rank)
			}
			if e.Pid != 0 {
				line += fmt.Sprintf(" pid %d", e.Pid)
			}
			if e.ExitCode != nil {
				line += fmt.Sprintf(" code %d", *e.ExitCode)
			}
			text = append(text, strings.TrimSpace(line+" "+string(e.Cause)))
		}
		before = n
	}
	return strings.Join(text, "\n")
}

// TestChanges: the log of whole jobs.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*story)
		want string
	}{
		{"a restart", func(s *story) {
			s.round(1, 2)
			s.exit(0, 3, 0, true)
			s.exit(1, 143, 15, false)
			s.event(status.KindRoundOver, nil, "over")
			s.publish()
			s.round(2, 2)
			s.exit(0, 0, 0, false)
			s.exit(1, 0, 0, false)
		}, `0 job_started
1 round_formed
1 worker_started rank 0 pid 101
1 worker_started rank 1 pid 102
1 worker_exited rank 0 pid 101 code 3
1 worker_failed rank 0 exit_code
1 worker_exited rank 1 pid 102 code 143
1 round_over
2 round_formed
2 worker_started rank 0 pid 103
2 worker_started rank 1 pid 104
2 worker_exited rank 0 pid 103 code 0
2 worker_exited rank 1 pid 104 code 0`},
		{"a survivor, a lost node", func(s *story) {
			s.round(1, 2)
			s.exit(1, 137, 9, true)
			s.event(status.KindNodeLost, nil, "b is lost")
			s.event(status.KindRoundOver, nil, "over")
			s.publish()
			s.round(2, 2, 0)
		}, `0 job_started
1 round_formed
1 worker_started rank 0 pid 101
1 worker_started rank 1 pid 102
1 worker_exited rank 1 pid 102 code 137
1 worker_failed rank 1 signal
1 node_lost
1 round_over
2 round_formed
2 worker_started rank 1 pid 103`},
		{"a hang is one failure", func(s *story) {
			s.round(1, 1)
			s.event(status.KindWorkerHangs, new(0), "no progress")
			s.publish()
			s.exit(0, 137, 9, true)
			s.round(2, 1)
			s.exit(0, 1, 0, true)
		}, `0 job_started
1 round_formed
1 worker_started rank 0 pid 101
1 worker_failed rank 0 hang
1 worker_exited rank 0 pid 101 code 137
2 round_formed
2 worker_started rank 0 pid 102
2 worker_exited rank 0 pid 102 code 1
2 worker_failed rank 0 exit_code`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory()
			c.tell(s)
			if got := s.lines(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestAllEvents: no event is lost or reported twice, also if old ones are not kept.
func TestAllEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory()
		s.round(1, 1)
		n := rapid.IntRange(0, 3*status.MaxEvents).Draw(t, "events")
		for i := range n {
			s.event(status.KindInterrupted, nil, fmt.Sprint(i))
			if rapid.IntRange(0, 3).Draw(t, "publish") > 0 {
				s.publish()
			}
		}
		s.publish()
		if got := strings.Count(s.lines(), string(Interrupt)); got != n {
			t.Fatalf("%d events, want %d", got, n)
		}
	})
}

// TestEnd: the names in the log are those in docs/status.md.
func TestEnd(t *testing.T) {
	text, err := json.Marshal(End(newStory().all[0], noon, 0, "done"))
	if want := `{"time":"2026-01-02T12:00:00Z","event":"job_ended","job":"train17","host":"a","node":"a/7","exit_code":0,"text":"done"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}

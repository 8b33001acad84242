package agent

import (
	"syscall"
	"testing"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestWhoPrints: one node prints the whole summary, and every other one a line. The nodes are a, b and c, with two workers each.
func TestWhoPrints(t *testing.T) {
	failed := func(host string, rank int, o rendezvous.Outcome) *rendezvous.ClosedError {
		o.Failure = &rendezvous.Failure{Death: death.Death{Host: host, Rank: rank, ExitCode: 3}, Node: host + "/1"}
		return &rendezvous.ClosedError{Outcome: o}
	}
	for _, c := range []struct {
		name string
		over *rendezvous.ClosedError // how the round ends; nil: nobody decides about the job
		want string                  // the nodes that print the summary
	}{
		{"a worker fails", failed("b", 3, rendezvous.Outcome{}), "b"},
		{"a worker of node 0 fails", failed("a", 0, rendezvous.Outcome{}), "a"},
		{"its node is lost", failed("b", 2, rendezvous.Outcome{Lost: true}), "a"},
		{"the last node is lost", failed("c", 5, rendezvous.Outcome{Lost: true}), "a"},
		{"node 0 is lost", failed("a", 1, rendezvous.Outcome{Lost: true}), "b"},
		{"its node leaves, and ends later", failed("b", 2, rendezvous.Outcome{Lost: true}), "a"},
		{"no rendezvous", nil, "abc"},
	} {
		got := ""
		for self, host := range []string{"a", "b", "c"} {
			round := &rendezvous.Round{Self: self, Size: 3, Node: rendezvous.Node{ID: host + "/1", Host: host, Nproc: 2}, Place: rendezvous.Place{FirstRank: 2 * self}}
			e := &WorkerError{Root: death.Death{Rank: 2 * self, ExitCode: 1}}
			if c.over != nil {
				if f := c.over.Outcome.Failure; f.Host != host {
					e = &WorkerError{Root: f.Death, Elsewhere: f}
				} else if c.over.Outcome.Lost {
					continue
				}
			}
			if e.summaryHost(round, c.over) == "" {
				got += host
			}
		}
		if got != c.want {
			t.Errorf("%s: %q print the summary, want %q", c.name, got, c.want)
		}
	}
	f := failed("a", 0, rendezvous.Outcome{}).Outcome.Failure
	late := &WorkerError{Root: f.Death, Elsewhere: f}
	if round := (&rendezvous.Round{Node: rendezvous.Node{ID: "b/1"}}); late.summaryHost(nil, nil) != "a" || late.summaryHost(round, nil) != "a" {
		t.Error("a spare, or a node that has left, prints the summary")
	}
}

// TestBrief: the line has what the summary of the other node does not have.
func TestBrief(t *testing.T) {
	far := func(text string) *rendezvous.Failure {
		return &rendezvous.Failure{Death: death.Death{Host: "b", Rank: 5, ExitCode: 3}, Text: text}
	}
	for want, e := range map[string]WorkerError{
		"rank 5 on b: exit code 3":                     {Elsewhere: far("")},
		"rank 5 on b: exit code 3: RuntimeError: boom": {Elsewhere: far("Traceback:\n  f()\nRuntimeError: boom\n")},
		"rank 5 on b: signal 9 (SIGKILL)":              {Elsewhere: &rendezvous.Failure{Death: death.Death{Host: "b", Rank: 5, Pid: 7, ExitCode: -9}, Text: "Signal 9 (SIGKILL) received by PID 7"}},
		"rank 5 on b: exit code 3: x; 2 workers of this node failed as well, first rank 1 (local rank 0, pid 7): signal 11 (SIGSEGV): bang": {
			Elsewhere: far("x"), Others: []death.Death{{Rank: 1, Pid: 7, ExitCode: -int(syscall.SIGSEGV), Stderr: []string{"a", "bang"}}, {Rank: 2, ExitCode: 1}}},
		"rank 5 on b: exit code 3: x; 1 worker of this node failed as well, first rank 1 (local rank 0, pid 7): exit code 7: no luck; error file: /d/error.json": {
			Elsewhere: far("x"), Others: []death.Death{{Rank: 1, Pid: 7, ExitCode: 7}}, ErrorFiles: map[int]ErrorFile{1: {File: "/d/error.json", Message: "no luck"}}},
		"rank 5 on b: exit code 3: x; What each rank did last (the flight recorder): d/*/flight.json; Before that, with exit code 0: rank 4 (pid 9) at 15:04:05.678": {
			Elsewhere: far("x"), Flights: "d/*/flight.json", Exited: []death.Death{{Rank: 4, Pid: 9, At: at}}},
	} {
		e.Root, e.SummaryHost = e.Elsewhere.Death, "b"
		if got := e.Brief(); got != want+"; see the summary of b" {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

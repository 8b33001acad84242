package agent

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

// TestFindRootCause: the root cause is named first, everybody is named once, and the exit code is that of the root cause unless the agent has
// caused that.
func TestFindRootCause(t *testing.T) {
	because := func(rank int) ErrorFile {
		return ErrorFile{Written: time.UnixMilli(5), FailedPeer: &death.Peer{Rank: rank, Finder: 0}}
	}
	first := death.Death{ExitCode: 1}
	for name, c := range map[string]struct {
		other    death.Death // rank 1
		files    map[int]ErrorFile
		wantRank int
		code     int
	}{
		"the first":              {death.Death{ExitCode: 3}, nil, 0, 1},
		"a crash":                {death.Death{ExitCode: -int(syscall.SIGSEGV)}, nil, 1, 139},
		"because of the other":   {death.Death{ExitCode: 3}, map[int]ErrorFile{0: because(1)}, 1, 3},
		"that has not failed":    {death.Death{}, map[int]ErrorFile{0: because(1)}, 0, 1},
		"on another node":        {death.Death{ExitCode: 3}, map[int]ErrorFile{0: because(7)}, 0, 1},
		"stopped on its way out": {death.Death{ExitCode: -int(syscall.SIGTERM), Stopped: true}, map[int]ErrorFile{0: because(1), 1: {Written: time.UnixMilli(4)}}, 1, 1},
		"stopped, its own code":  {death.Death{ExitCode: 3, Stopped: true}, map[int]ErrorFile{0: because(1), 1: {Written: time.UnixMilli(4)}}, 1, 3},
		"the older of the files": {death.Death{ExitCode: 3}, map[int]ErrorFile{0: {Written: time.UnixMilli(5)}, 1: {Written: time.UnixMilli(4)}}, 1, 3},
	} {
		c.other.Rank = 1
		e := &WorkerError{Root: first, Code: first.Code(), ErrorFiles: c.files}
		e.add([]death.Death{c.other, {Rank: 2, ExitCode: 1, Stopped: true}})
		e.findRootCause()
		if e.Root.Rank != c.wantRank || e.Code != c.code {
			t.Errorf("%s: rank %d with %d, want rank %d with %d", name, e.Root.Rank, e.Code, c.wantRank, c.code)
		}
		seen := make(map[int]int)
		for _, x := range slices.Concat([]death.Death{e.Root}, e.Others, e.Stopped, e.Exited) {
			seen[x.Rank]++
		}
		if len(seen) != 3 || seen[0] != 1 || seen[1] != 1 || seen[2] != 1 {
			t.Errorf("%s: ranks are named %v times", name, seen)
		}
	}
	far := &rendezvous.Failure{Death: death.Death{Rank: 7, ExitCode: 3}}
	e := &WorkerError{Root: far.Death, Code: 3, Elsewhere: far, Others: []death.Death{{Rank: 1, ExitCode: -9}}}
	if e.findRootCause(); e.Root.Rank != 7 || e.Code != 3 {
		t.Errorf("rank %d with %d, want the other node's rank 7", e.Root.Rank, e.Code)
	}
}

// TestReportable: what is reported is not the failure that was seen first, if that happened because of another one of this node, which
// is waited for.
func TestReportable(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  string        // rank 2, of ranks 2 and 3, in its error file
		other death.Death   // rank 3
		after time.Duration // it ends
		want  int
		took  time.Duration
	}{
		{"it ends a moment later", `"failed_peer":{"rank":3,"finder":2}`, death.Death{Rank: 3, LocalRank: 1, ExitCode: 3}, time.Millisecond, 3, time.Millisecond},
		{"it is stopped", `"failed_peer":{"rank":3,"finder":2}`, death.Death{Rank: 3, LocalRank: 1, ExitCode: 143, Stopped: true}, time.Millisecond, 2, time.Millisecond},
		{"it has left", `"failed_peer":{"rank":3,"finder":2}`, death.Death{Rank: 3, LocalRank: 1}, 0, 2, 0},
		{"it does not end", `"failed_peer":{"rank":3,"finder":2}`, death.Death{Rank: 3}, time.Hour, 2, peerTimeout},
		{"it is on another node", `"failed_peer":{"rank":4,"finder":2}`, death.Death{Rank: 3}, time.Hour, 2, 0},
		{"no such rank", `"failed_peer":{"rank":-3,"finder":2}`, death.Death{Rank: 3}, time.Hour, 2, 0},
		{"it is itself", `"failed_peer":{"rank":2,"finder":2}`, death.Death{Rank: 3}, time.Hour, 2, 0},
		{"nothing is said", `"restart":true`, death.Death{Rank: 3, ExitCode: 3}, time.Hour, 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			config := Config{ErrorDir: t.TempDir()}
			round, _ := rendezvous.Begin(rendezvous.Round{Size: 2, Node: rendezvous.Node{Nproc: 2}, Place: rendezvous.Place{FirstRank: 2, WorldSize: 4}}, nil)
			if err := prepareAttempt(config, 0, 2); err != nil {
				t.Fatal(err)
			}
			write(t, errorFile(config, 0, 0), `{"message":"m",`+c.says+`}`)
			ended, first := make(chan death.Death, 2), death.Death{Rank: 2, ExitCode: 1}
			ended <- first
			time.AfterFunc(c.after, func() { ended <- c.other })
			begun := time.Now()
			if got := reportable(config, round, first, ended); got.Rank != c.want || time.Since(begun) != c.took {
				t.Errorf("%s: rank %d after %v, want rank %d after %v", c.name, got.Rank, time.Since(begun), c.want, c.took)
			}
		})
	}
}

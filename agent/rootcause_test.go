package agent

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

func TestAccuse(t *testing.T) {
	const never = -1
	term := launcher.Exit{Rank: 1, Code: 143, Signal: syscall.SIGTERM, Stopped: true}
	for _, c := range []struct {
		name     string
		root     launcher.Exit
		other    launcher.Exit // rank 1
		files    [2]int        // milliseconds at which ranks 0 and 1 wrote their error files
		wantRank int
		code     int
	}{
		{"the first to exit wrote first", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{1, 2}, 0, 3},
		{"the first to exit wrote second", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 1}, 1, 4},
		{"at the same time", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 2}, 0, 3},
		{"stopped on its way out", launcher.Exit{Code: 3}, term, [2]int{2, 1}, 1, 3},
		{"stopped, and it exited by itself", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 1, Stopped: true}, [2]int{2, 1}, 1, 1},
		{"no file of the first", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{never, 1}, 0, 3},
		{"no file of the other", launcher.Exit{Code: 3}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, never}, 0, 3},
		{"a crash", launcher.Exit{Code: 139, Signal: syscall.SIGSEGV}, launcher.Exit{Rank: 1, Code: 4}, [2]int{2, 1}, 0, 139},
	} {
		e := &WorkerError{Root: c.root, Code: c.root.Code, ErrorFiles: make(map[int]ErrorFile)}
		if c.other.Stopped {
			e.Stopped = []launcher.Exit{c.other, {Rank: 2, Stopped: true}}
		} else {
			e.Others = []launcher.Exit{{Rank: 2}, c.other}
		}
		for rank, ms := range c.files {
			if ms != never {
				e.ErrorFiles[rank] = ErrorFile{Written: time.UnixMilli(int64(ms))}
			}
		}
		e.findRootCause()
		if e.Root.Rank != c.wantRank || e.Code != c.code {
			t.Errorf("%s: rank %d with %d, want rank %d with %d", c.name, e.Root.Rank, e.Code, c.wantRank, c.code)
		}
		seen := map[int]int{e.Root.Rank: 1}
		for _, x := range append(e.Others, e.Stopped...) {
			seen[x.Rank]++
		}
		if len(seen) != 3 || seen[0] != 1 || seen[1] != 1 || seen[2] != 1 {
			t.Errorf("%s: ranks told %v times", c.name, seen)
		}
	}
}

// TestAccuseFailedPeer: whoever has failed because of another worker of its node is not the root cause.
func TestAccuseFailedPeer(t *testing.T) {
	because := func(rank, finder int) ErrorFile {
		return ErrorFile{Written: time.UnixMilli(5), FailedPeer: &rendezvous.FailedPeer{Rank: rank, Finder: finder}}
	}
	first, failed := launcher.Exit{Code: 1}, launcher.Exit{Rank: 1, Code: 3}
	obeyed := launcher.Exit{Rank: 1, Code: 143, Signal: syscall.SIGTERM, Stopped: true}
	for _, c := range []struct {
		name        string
		root, other launcher.Exit // ranks 0 and 1
		reports     map[int]ErrorFile
		wantRank    int
		code        int
	}{
		{"it has failed", first, failed, map[int]ErrorFile{0: because(1, 0)}, 1, 3},
		{"it has failed, as another one has found", first, failed, map[int]ErrorFile{0: because(7, 1)}, 1, 3},
		{"it is on another node", first, failed, map[int]ErrorFile{0: because(7, 0)}, 0, 1},
		{"it was stopped", first, obeyed, map[int]ErrorFile{0: because(1, 0)}, 0, 1},
		{"it was stopped after it had failed", first, obeyed, map[int]ErrorFile{0: because(1, 0), 1: {Written: time.UnixMilli(4)}}, 1, 1},
		{"it was stopped, and tells of that", first, obeyed, map[int]ErrorFile{0: because(1, 0), 1: {Written: time.UnixMilli(6)}}, 0, 1},
		{"each because of the other", first, failed, map[int]ErrorFile{0: because(1, 0), 1: because(0, 1)}, 0, 1},
		{"an older file tells of the first", first, failed, map[int]ErrorFile{0: {Written: time.UnixMilli(6)}, 1: because(0, 1)}, 0, 1},
		{
			"it has only found why the first revoked the round", launcher.Exit{Code: 1, Revoked: "rank 7 has left"}, obeyed,
			map[int]ErrorFile{0: because(7, 1), 1: {Written: time.UnixMilli(4), FailedPeer: &rendezvous.FailedPeer{Rank: 7, Finder: 1}}}, 0, 1,
		},
		{"a crash", launcher.Exit{Code: 139, Signal: syscall.SIGSEGV}, failed, map[int]ErrorFile{0: because(1, 0)}, 0, 139},
	} {
		e := &WorkerError{Root: c.root, Code: c.root.Code, ErrorFiles: c.reports}
		e.add([]launcher.Exit{c.other})
		e.findRootCause()
		if e.Root.Rank != c.wantRank || e.Code != c.code || len(e.Others)+len(e.Stopped) != 1 {
			t.Errorf("%s: rank %d with %d, want rank %d with %d; others: %v, stopped: %v", c.name, e.Root.Rank, e.Code, c.wantRank, c.code, e.Others, e.Stopped)
		}
	}
	far := &rendezvous.Failure{Rank: 7, Code: 3}
	e := &WorkerError{Root: exitOf(far), Code: 3, Elsewhere: far, Others: []launcher.Exit{failed}, ErrorFiles: map[int]ErrorFile{7: because(1, 7)}}
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
		other launcher.Exit // rank 3
		after time.Duration // it ends
		want  int
		took  time.Duration
	}{
		{"it ends a moment later", `"failed_peer":{"rank":3,"finder":2}`, launcher.Exit{Rank: 3, LocalRank: 1, Code: 3}, time.Millisecond, 3, time.Millisecond},
		{"it is stopped", `"failed_peer":{"rank":3,"finder":2}`, launcher.Exit{Rank: 3, LocalRank: 1, Code: 143, Stopped: true}, time.Millisecond, 2, time.Millisecond},
		{"it has left", `"failed_peer":{"rank":3,"finder":2}`, launcher.Exit{Rank: 3, LocalRank: 1}, 0, 2, 0},
		{"it does not end", `"failed_peer":{"rank":3,"finder":2}`, launcher.Exit{Rank: 3}, time.Hour, 2, peerTimeout},
		{"it is on another node", `"failed_peer":{"rank":4,"finder":2}`, launcher.Exit{Rank: 3}, time.Hour, 2, 0},
		{"no such rank", `"failed_peer":{"rank":-3,"finder":2}`, launcher.Exit{Rank: 3}, time.Hour, 2, 0},
		{"it is itself", `"failed_peer":{"rank":2,"finder":2}`, launcher.Exit{Rank: 3}, time.Hour, 2, 0},
		{"nothing is said", `"restart":true`, launcher.Exit{Rank: 3, Code: 3}, time.Hour, 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			config := Config{ErrorDir: t.TempDir()}
			round, _ := rendezvous.Begin(rendezvous.Round{Size: 2, Node: rendezvous.Node{Nproc: 2}, Place: rendezvous.Place{FirstRank: 2, WorldSize: 4}}, nil)
			if err := prepareAttempt(config, 0, 2); err != nil {
				t.Fatal(err)
			}
			write(t, errorFile(config, 0, 0), `{"message":"m",`+c.says+`}`)
			ended, first := make(chan launcher.Exit, 2), launcher.Exit{Rank: 2, Code: 1}
			ended <- first
			time.AfterFunc(c.after, func() { ended <- c.other })
			begun := time.Now()
			if got := reportable(config, round, first, ended); got.Rank != c.want || time.Since(begun) != c.took {
				t.Errorf("%s: rank %d after %v, want rank %d after %v", c.name, got.Rank, time.Since(begun), c.want, c.took)
			}
		})
	}
}

package agent

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/rendezvous"
)

func lookupIn(environ []string) func(string) (string, bool) {
	values := make(map[string]string)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestWorkers(t *testing.T) {
	round, _ := rendezvous.Begin(rendezvous.Round{
		ID: 4, Self: 1, Token: "s3cret", StoreAddr: "10.0.0.1:7", Master: rendezvous.Master{Addr: "10.0.0.1", Port: 29500},
		Nodes: []rendezvous.Node{{Role: "ps", Nproc: 1}, {Role: "trainer", Nproc: 2}, {Role: "ps", Nproc: 3}},
	}, nil)
	got := workers(Config{RunID: "job", MaxRestarts: 3, Environ: []string{"HOME=/root", "RANK=77"}}, round, 2, "/logs/attempt_2")
	if len(got) != 2 {
		t.Fatalf("%d workers, want 2", len(got))
	}
	for local, spec := range got {
		want := env.Worker{
			Rank: 1 + local, WorldSize: 6, LocalRank: local, LocalWorldSize: 2, GroupRank: 1, GroupWorldSize: 3,
			RoleName: "trainer", RoleRank: local, RoleWorldSize: 2, MasterAddr: "10.0.0.1", MasterPort: 29500,
			RestartCount: 2, MaxRestarts: 3, RunID: "job", ErrorFile: "/logs/attempt_2/" + []string{"0", "1"}[local] + "/error.json",
			Round: 4, Token: "s3cret", StoreAddr: "10.0.0.1:7",
		}
		w, err := env.Parse(lookupIn(spec.Env))
		if err != nil || w != want || spec.Rank != want.Rank {
			t.Errorf("local rank %d: %q (%v)\nwant %q", local, spec.Env, err, want.Environ())
		}
		names := make(map[string]int)
		for _, kv := range spec.Env {
			names[nameOf(kv)]++
		}
		for name, n := range names {
			if n > 1 {
				t.Errorf("%s is set %d times", name, n)
			}
		}
		if home, _ := lookupIn(spec.Env)("HOME"); home != "/root" {
			t.Errorf("HOME is not inherited")
		}
	}
	if without := workers(Config{}, round, 0, ""); !slices.Contains(without[0].Env, "TORCHELASTIC_ERROR_FILE=") {
		t.Errorf("an error file without a log directory: %q", without[0].Env)
	}
}

func TestInherit(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		nproc   int
		want    []string
		notice  bool
	}{
		{"defaults", []string{"A=1"}, 2, []string{"A=1", "OMP_NUM_THREADS=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}, true},
		{"one worker has all cores", nil, 1, []string{"TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}, false},
		{"inherited", []string{"OMP_NUM_THREADS=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"}, 2,
			[]string{"OMP_NUM_THREADS=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"}, false},
		{"an outer launcher's", []string{"GORUN_TOKEN=x", "GORUN_ANYTHING=1", "RANK=3", "TORCHELASTIC_RUN_ID=o", "PET_NNODES=1", "A=b=c", "OMP_NUM_THREADS=4"}, 2,
			[]string{"A=b=c", "OMP_NUM_THREADS=4", "PET_NNODES=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}, false},
	} {
		got := slices.Sorted(slices.Values(inherit(c.environ, c.nproc)))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		var log bytes.Buffer
		noticeThreads(Config{Environ: c.environ, Node: rendezvous.Node{Nproc: c.nproc}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
		if lines := strings.Count(log.String(), "\n"); lines > 1 || (lines == 1) != c.notice {
			t.Errorf("%s: notice %q, want one: %t", c.name, log.String(), c.notice)
		}
	}
}

func TestInheritKeepsItsInput(t *testing.T) {
	environ := []string{"GORUN_ROUND=1", "A=1"}
	before := slices.Clone(environ)
	inherit(environ, 2)
	if !slices.Equal(environ, before) {
		t.Errorf("input is now %q", environ)
	}
}

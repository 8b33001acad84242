package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env"
	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// valuesOf returns all that an environment has for a name.
func valuesOf(environ []string, name string) (values []string) {
	for _, kv := range environ {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			values = append(values, value)
		}
	}
	return values
}

func lookupIn(environ []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		values := valuesOf(environ, name)
		return strings.Join(values, " and "), len(values) > 0
	}
}

func TestWorkers(t *testing.T) {
	round, _ := rendezvous.Begin(rendezvous.Round{
		ID: 4, Self: 1, Restarts: 2, Token: "s3cret", StoreAddr: "10.0.0.1:7", Master: rendezvous.Master{Addr: "10.0.0.1", Port: 29500},
		Size: 3, Node: rendezvous.Node{Role: "trainer", Nproc: 2}, Place: rendezvous.Place{FirstRank: 1, WorldSize: 6, RoleWorldSize: 2},
	}, nil)
	got := Plan(Config{RunID: "job", MaxRestarts: 3, Environ: []string{"HOME=/root", "RANK=77"},
		Spec: launcher.Spec{Logs: launcher.LogSpec{Dir: "/logs"}}}, round).Workers
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
		for _, kv := range spec.Env {
			if values := valuesOf(spec.Env, nameOf(kv)); len(values) > 1 {
				t.Errorf("%s is set %d times", nameOf(kv), len(values))
			}
		}
		if home := valuesOf(spec.Env, "HOME"); !slices.Equal(home, []string{"/root"}) {
			t.Errorf("HOME is not inherited")
		}
	}
}

func TestInherit(t *testing.T) {
	for _, c := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"defaults", []string{"A=1"}, []string{"A=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}},
		{"inherited", []string{"OMP_NUM_THREADS=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"},
			[]string{"OMP_NUM_THREADS=", "TORCH_NCCL_ASYNC_ERROR_HANDLING=0"}},
		{"an outer launcher's", []string{"GORUN_TOKEN=x", "GORUN_ROUND=7", "RANK=3", "TORCHELASTIC_RUN_ID=o", "PET_NNODES=1", "A=b=c", "OMP_NUM_THREADS=4"},
			[]string{"A=b=c", "OMP_NUM_THREADS=4", "PET_NNODES=1", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}},
		{"the user's own, whatever the name", []string{"GORUN_DATA=/data", "GORUN_=1"}, []string{"GORUN_=1", "GORUN_DATA=/data", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}},
		{"for package comm", []string{"GORUN_KERNELS=avx2", "GORUN_COMM_TUNE=all_reduce=ring", "GORUN_COMM_CONNECTIONS=4"},
			[]string{"GORUN_COMM_CONNECTIONS=4", "GORUN_COMM_TUNE=all_reduce=ring", "GORUN_KERNELS=avx2", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"}},
	} {
		before := slices.Clone(c.environ)
		got := slices.Sorted(slices.Values(Inherited(Config{Environ: c.environ})))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if !slices.Equal(c.environ, before) {
			t.Errorf("%s: the input is now %q", c.name, c.environ)
		}
	}
}

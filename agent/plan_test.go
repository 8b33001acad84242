package agent

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// duo is a round whose one node has two workers.
func duo(restarts int) *rendezvous.Round {
	round, _ := rendezvous.Begin(rendezvous.Round{
		ID: 1, Restarts: restarts, Size: 1, Node: rendezvous.Node{Role: "trainer", Nproc: 2},
		Place: rendezvous.Place{WorldSize: 2, RoleWorldSize: 2}, Master: rendezvous.Master{Addr: "127.0.0.1", Port: 29500},
	}, nil)
	return round
}

func TestPlan(t *testing.T) {
	c := Config{
		Spec: launcher.Spec{Argv: []string{"python3", "-u", "a.py", "x"}, Logs: launcher.LogSpec{Dir: "/logs/job", Discard: true}, Color: true},
		Args: 1, CPUs: [][]int{{0, 1}, {2, 3}}, MemNodes: [][]int{{0}, {1}},
		Prefix: "${role_name}/$rank$$${nobody}$ ", Show: map[int]bool{1: true},
	}
	spec := Plan(c, duo(3))
	if want := "/logs/job/attempt_3"; spec.Logs.Dir != want || !spec.Logs.Discard || !spec.Color || !slices.Equal(spec.Argv, c.Spec.Argv) {
		t.Errorf("%+v: the job's spec was lost, or its logs are not in %s", spec, want)
	}
	for local, got := range spec.Workers {
		got.Env = nil
		want := launcher.WorkerSpec{Rank: local, CPUs: c.CPUs[local], MemNodes: c.MemNodes[local],
			Prefix: []string{"trainer/0$${nobody}$ ", "trainer/1$${nobody}$ "}[local], Mute: local == 0}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("local rank %d: %+v, want %+v", local, got, want)
		}
	}
	if c.Spec.Workers != nil || c.Spec.Logs.Dir != "/logs/job" {
		t.Errorf("Plan has changed its input: %+v", c.Spec)
	}
}

func TestPlanPrefix(t *testing.T) {
	for _, c := range []struct {
		template string
		want     string
	}{
		{DefaultPrefix, "[1] "},
		{"", ""},
		{"[$role_name:${local_rank}]: ", "[trainer:1]: "},
		{"$$rank ${rank $rankle ${} $1 $", "$rank ${rank $rankle ${} $1 $"},
	} {
		if got := Plan(Config{Prefix: c.template}, duo(0)).Workers[1].Prefix; got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestPlanArgv(t *testing.T) {
	for _, c := range []struct {
		name     string
		argv     []string
		args     int
		localArg bool
		want     []string // local rank 1's; nil: everybody's
	}{
		{"no arguments", []string{"./train"}, 0, false, nil},
		{"nothing to say", []string{"./train", "--x=$$", "", "a\nb", "${local_rank", "$local_rank", "${LOCAL_RANK}"}, 6, false, nil},
		{"the macro", []string{"./train", "--out=${local_rank}/${local_rank}$$", "${rank}"}, 2, false, []string{"./train", "--out=1/1$$", "${rank}"}},
		{"the macro in the program's name", []string{"./${local_rank}", "x"}, 1, false, nil},
		{"the flag", []string{"python3", "-u", "a.py", "--x"}, 1, true, []string{"python3", "-u", "a.py", "--local-rank=1", "--x"}},
		{"the flag alone", []string{"python3", "-u", "a.py"}, 0, true, []string{"python3", "-u", "a.py", "--local-rank=1"}},
	} {
		before := slices.Clone(c.argv)
		spec := Plan(Config{Spec: launcher.Spec{Argv: c.argv}, Args: c.args, LocalRankArg: c.localArg}, duo(0))
		if got := spec.Workers[1].Argv; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if !slices.Equal(c.argv, before) {
			t.Errorf("%s: the input is now %q", c.name, c.argv)
		}
	}
}

// TestPlanArgvIsKept: arguments without the macro arrive byte by byte.
func TestPlanArgvIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"$$", "${", "}", "local_rank", "$local_rank"})), 1, 9).Draw(t, "argv")
		args := rapid.IntRange(0, len(argv)).Draw(t, "args")
		if strings.Contains(strings.Join(argv, "\n"), localRankMacro) {
			t.Skip("has the macro")
		}
		if got := Plan(Config{Spec: launcher.Spec{Argv: argv}, Args: args}, duo(0)).Workers[1].Argv; got != nil {
			t.Fatalf("%q, want %q", got, argv)
		}
	})
}

// TestPlanDevices: each worker sees one device, as the first of its own.
func TestPlanDevices(t *testing.T) {
	c := Config{Environ: []string{"CUDA_VISIBLE_DEVICES=4,GPU-7"}, Devices: []string{"4", "GPU-7"}, DeviceVariable: "CUDA_VISIBLE_DEVICES"}
	for local, w := range Plan(c, duo(0)).Workers {
		for name, want := range map[string]string{"CUDA_VISIBLE_DEVICES": c.Devices[local], "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "RANK": []string{"0", "1"}[local]} {
			values := valuesOf(w.Env, name)
			if !slices.Equal(values, []string{want}) {
				t.Errorf("local rank %d: %s is %q, want %q", local, name, values, want)
			}
		}
	}
	c.Devices = nil
	for local, w := range Plan(c, duo(0)).Workers {
		if got, want := valuesOf(w.Env, "CUDA_VISIBLE_DEVICES"), []string{"4,GPU-7"}; !slices.Equal(got, want) {
			t.Errorf("local rank %d without devices of its own: %q, want %q", local, got, want)
		}
	}
}

func TestPlanErrorFile(t *testing.T) {
	for _, c := range []struct{ logs, errors, want string }{
		{"", "", ""},
		{"/logs/job", "", "/logs/job/attempt_2/1/error.json"},
		{"", "/tmp/job", "/tmp/job/attempt_2/1/error.json"},
		{"/logs/job", "/tmp/job", "/logs/job/attempt_2/1/error.json"},
	} {
		config := Config{Spec: launcher.Spec{Logs: launcher.LogSpec{Dir: c.logs}}, ErrorDir: c.errors}
		if got := valuesOf(Plan(config, duo(2)).Workers[1].Env, "TORCHELASTIC_ERROR_FILE"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// parse runs the command without running a job.
func parse(t *testing.T, args ...string) (o *options, command []string, err error) {
	t.Helper()
	cmd := newCommand(func(_ context.Context, got *options, rest []string) error {
		o, command = got, rest
		return nil
	})
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err = cmd.Execute()
	return o, command, err
}

func TestDefaults(t *testing.T) {
	o, command, err := parse(t, "./train")
	if err != nil {
		t.Fatal(err)
	}
	if len(o.runID) != 16 {
		t.Errorf("run id %q, want 16 random digits", o.runID)
	}
	o.runID = ""
	want := &options{given: map[string]string{}, nnodes: 1, nproc: 1, role: "default", backend: "static", grace: 30 * time.Second}
	if !reflect.DeepEqual(o, want) || !slices.Equal(command, []string{"./train"}) {
		t.Errorf("got %+v, %q\nwant %+v", o, command, want)
	}
}

// accepted is a good value for every flag, in its two spellings and in the environment, and what it means.
var accepted = map[string]struct {
	value string
	holds func(*options) bool
}{
	"nnodes":           {"1:1", func(o *options) bool { return o.nnodes == 1 }},
	"nproc-per-node":   {"cpu", func(o *options) bool { return o.nproc == runtime.NumCPU() }},
	"node-rank":        {"0", func(o *options) bool { return o.nodeRank == 0 }},
	"role":             {"trainer", func(o *options) bool { return o.role == "trainer" }},
	"local-addr":       {"10.0.0.7", func(o *options) bool { return o.localAddr == "10.0.0.7" }},
	"standalone":       {"1", func(o *options) bool { return o.standalone }},
	"master-addr":      {"[0:0:0:0:0:0:0:1]", func(o *options) bool { return o.master.Addr == "0:0:0:0:0:0:0:1" }},
	"master-port":      {"1234", func(o *options) bool { return o.master.Port == 1234 }},
	"rdzv-endpoint":    {"[::1]:77", func(o *options) bool { return o.master == rendezvous.Master{Addr: "::1", Port: 77} }},
	"rdzv-backend":     {"static", func(o *options) bool { return o.backend == "static" }},
	"rdzv-id":          {"job 7", func(o *options) bool { return o.runID == "job 7" }},
	"rdzv-conf":        {` rank='0', timeout="900",`, func(o *options) bool { return *o.confRank == 0 }},
	"rdzv-token-file":  {"testdata/token", func(o *options) bool { return o.token == "0123456789abcdef" }},
	"max-restarts":     {"3", func(o *options) bool { return o.maxRestarts == 3 }},
	"shutdown-timeout": {"0.5", func(o *options) bool { return o.grace == 500*time.Millisecond }},
	"monitor-interval": {"0.1", func(*options) bool { return true }},
	"start-method":     {"forkserver", func(*options) bool { return true }},
	"log-dir":          {"logs", func(o *options) bool { return o.logDir == "logs" }},
	"redirects":        {"0:3,10:1", func(o *options) bool { return o.redirects.For(10) == launcher.Stdout }},
	"tee":              {"2", func(o *options) bool { return o.tee.For(4) == launcher.Stderr }},
}

func TestEveryFlagEverySpelling(t *testing.T) {
	for _, f := range table {
		good, ok := accepted[f.name]
		if !ok {
			t.Errorf("--%s is not tested", f.name)
			continue
		}
		ways := map[string][]string{
			"dashes":      {"--" + f.name + "=" + good.value, "x"},
			"underscores": {"--" + strings.ReplaceAll(f.name, "-", "_") + "=" + good.value, "x"},
		}
		if f.value != "" {
			ways["apart"] = []string{"--" + f.name, good.value, "x"}
		} else {
			ways["switch"] = []string{"--" + f.name, "x"}
		}
		if f.short != "" {
			ways["short"] = []string{"-" + f.short + good.value, "x"}
		}
		for way, args := range ways {
			if o, command, err := parse(t, args...); err != nil || !good.holds(o) || !slices.Equal(command, []string{"x"}) {
				t.Errorf("%s %q: %+v, %q, %v", way, args, o, command, err)
			}
		}
		t.Run(f.env(), func(t *testing.T) {
			t.Setenv(f.env(), good.value)
			if o, _, err := parse(t, "x"); err != nil || !good.holds(o) {
				t.Errorf("%s=%s: %+v, %v", f.env(), good.value, o, err)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	want := func(seconds int, args ...string) {
		t.Helper()
		if o, _, err := parse(t, append(args, "x")...); err != nil || o.grace != time.Duration(seconds)*time.Second {
			t.Errorf("%q: %+v, %v, want %d s", args, o, err, seconds)
		}
	}
	want(30)
	t.Setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "600")
	want(600)
	t.Setenv("PET_SHUTDOWN_TIMEOUT", "7")
	want(7)
	want(5, "--shutdown-timeout=5")
	want(0, "--shutdown-timeout=5", "--shutdown_timeout=0")
}

func TestWhatBelongsToTheProgram(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"x", "--nnodes=9", "-t", "--", "--help"}, []string{"x", "--nnodes=9", "-t", "--", "--help"}},
		{[]string{"--", "x", "--", "y"}, []string{"x", "--", "y"}},
		{[]string{"--tee", "3", "x", "", "a\nb"}, []string{"x", "", "a\nb"}},
		{[]string{"--", "-x"}, []string{"-x"}},
	} {
		if _, got, err := parse(t, c.args...); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long")
	if err := os.WriteFile(long, []byte(strings.Repeat("s3cret", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string // split at spaces
		want string
	}{
		{"--nproc-per-node=banana x", "--nproc-per-node=banana: want a positive number, auto, cpu or gpu"},
		{"--nproc_per_node 0 x", "--nproc-per-node=0: want a positive number, auto, cpu or gpu"},
		{"--nproc-per-node=-1 x", "--nproc-per-node=-1: want a positive number, auto, cpu or gpu"},
		{"--nproc-per-node= x", `--nproc-per-node="": want a positive number, auto, cpu or gpu`},
		{"--nnodes=2:1 x", "--nnodes=2:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=2:20:30 x", "--nnodes=2:20:30: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=0:1 x", "--nnodes=0:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=1:2 x", "--nnodes=1:2: a range needs an elastic rendezvous backend, and static is the only one: want one number"},
		{"--nnodes=2 x", "--nnodes=2: where is node 0? Say it on every node, as in --master-addr=node0 --master-port=29500"},
		{"--nnodes=2 --master-addr=h --node-rank=2 x", "--node-rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--nnodes=2 --master-addr=h --rdzv-conf=rank=2 x", "--rdzv-conf=rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--node-rank=-1 x", "--node-rank=-1: want a number from 0 to 65535"},
		{"--master-addr=a/b x", "--master-addr=a/b: want a host name or an IP address"},
		{"--master-port=65536 x", "--master-port=65536: want a number from 0 to 65535"},
		{"--rdzv-endpoint=:77 x", "--rdzv-endpoint=:77: want host:port"},
		{"--rdzv-endpoint=h:p x", "--rdzv-endpoint=h:p: want host:port"},
		{"--rdzv-backend=statc x", "--rdzv-backend=statc: no such backend (did you mean static?): want static"},
		{"--rdzv-backend=c10d x", "--rdzv-backend=c10d: this version has no elastic rendezvous backend: want static"},
		{"--rdzv-conf=timout=3 x", "--rdzv-conf=timout=3: no such key timout (did you mean timeout?): want rank or timeout"},
		{"--rdzv-conf=timeout=soon x", "--rdzv-conf=timeout=soon: timeout: want a number from 1 to 1073741824"},
		{"--rdzv-conf=rank x", "--rdzv-conf=rank: rank has no value: want pairs key=value with commas between"},
		{"--rdzv-token-file=/nonexistent x", "--rdzv-token-file=/nonexistent: cannot read the token: open /nonexistent: no such file or directory"},
		{"--rdzv-token-file=/dev/null x", "--rdzv-token-file=/dev/null: want a token of 16 to 1024 visible ASCII characters, as of openssl rand -hex 32"},
		{"--rdzv-token-file=" + long + " x", "--rdzv-token-file=" + long + ": want a token of 16 to 1024 visible ASCII characters, as of openssl rand -hex 32"},
		{"--standalone=maybe x", "--standalone=maybe: want 1 or 0"},
		{"--standalone --nnodes=2 x", "--nnodes=2: --standalone is for one node"},
		{"--max-restarts=-1 x", "--max-restarts=-1: want a number from 0 to 1073741824"},
		{"--shutdown-timeout=-1 x", "--shutdown-timeout=-1: want a number of seconds, 0 or more"},
		{"--shutdown-timeout=NaN x", "--shutdown-timeout=NaN: want a number of seconds, 0 or more"},
		{"--monitor-interval=0 x", "--monitor-interval=0: want a positive number of seconds"},
		{"--start-method=thread x", "--start-method=thread: want spawn, fork or forkserver"},
		{"--role= x", `--role="": want a name`},
		{"-r 4 x", "--redirects=4: want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2"},
		{"--tee=0:9 x", `--tee=0:9: "0:9" in "0:9": want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2`},
		{"--nprocs-per-node=2 x", "unknown flag --nprocs-per-node: did you mean --nproc-per-node?"},
		{"--master_adr=h x", "unknown flag --master_adr: did you mean --master-addr?"},
		{"--frobnicate x", "unknown flag --frobnicate: gorun --help lists all"},
		{"-x", "unknown flag -x: gorun --help lists all"},
		{"--nnodes", "--nnodes needs a value, as in --nnodes=N: nodes of the job (1)"},
		{"--nnodes=1", "no program to run: give one, as in gorun --nproc-per-node=2 ./train --epochs=3"},
	} {
		o, _, err := parse(t, strings.Split(c.args, " ")...)
		if err == nil || err.Error() != c.want || o != nil {
			t.Errorf("%s:\n got %v\nwant %s", c.args, err, c.want)
			continue
		}
		if code := exitCode(err); code != 2 {
			t.Errorf("%s: exit code %d, want 2", c.args, code)
		}
	}
}

func TestErrorNamesTheVariable(t *testing.T) {
	t.Setenv("PET_NPROC_PER_NODE", "many")
	if _, _, err := parse(t, "x"); err == nil || err.Error() != "PET_NPROC_PER_NODE=many: want a positive number, auto, cpu or gpu" {
		t.Errorf("got %v", err)
	}
	t.Setenv("PET_NPROC_PER_NODE", "")
	t.Setenv("GORUN_TOKEN", "s3cret")
	if _, _, err := parse(t, "--nproc-per-node=1", "x"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.HasPrefix(err.Error(), "GORUN_TOKEN: want a token") {
		t.Errorf("got %v", err)
	}
}

func TestSeveralNodes(t *testing.T) {
	for _, c := range []struct {
		args   string
		rank   int
		master rendezvous.Master
	}{
		{"--master-addr=h", 0, rendezvous.Master{Addr: "h", Port: 29500}},
		{"--master-addr=h --master-port=7 --node-rank=1", 1, rendezvous.Master{Addr: "h", Port: 7}},
		{"--rdzv-endpoint=h:7 --master-addr=other", 0, rendezvous.Master{Addr: "h", Port: 7}},
		{"--rdzv-endpoint=h --rdzv-conf=rank=1", 1, rendezvous.Master{Addr: "h", Port: 29500}},
		{"--rdzv-endpoint=h --rdzv-conf=rank=1 --node-rank=0", 0, rendezvous.Master{Addr: "h", Port: 29500}},
	} {
		o, _, err := parse(t, append(strings.Fields(c.args), "--nnodes=2", "x")...)
		if err != nil || o.nodeRank != c.rank || o.master != c.master || o.runID != "none" {
			t.Errorf("%s: %+v, %v", c.args, o, err)
		}
	}
}

func TestStandaloneOverrides(t *testing.T) {
	o, _, err := parse(t, "--standalone", "--rdzv-backend=c10d", "--rdzv-endpoint=h:1", "--rdzv-id=me", "x")
	want := []string{"--rdzv-backend", "--rdzv-endpoint", "--rdzv-id"}
	if err != nil || o.master != (rendezvous.Master{}) || o.runID == "me" || !slices.Equal(o.overridden, want) {
		t.Errorf("got %+v, %v", o, err)
	}
}

// FuzzValues gives hostile text to every flag: no panic, and an error is one short line.
func FuzzValues(f *testing.F) {
	for _, v := range slices.Sorted(maps.Keys(accepted)) {
		f.Add(accepted[v].value)
	}
	f.Add("a\nb\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		for i := range table {
			vs := values{{flag: &table[i], text: text, given: true}}
			if table[i].name == "rdzv-token-file" {
				continue // it would be read
			}
			_, err := vs.options(func(string) (string, bool) { return "", false })
			if err != nil && (strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 2000) {
				t.Errorf("--%s: not one line: %q", table[i].name, err)
			}
		}
	})
}

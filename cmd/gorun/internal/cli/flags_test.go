package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// bare is a machine with two NVIDIA devices on which nothing is set but what the test has set.
func bare() host {
	return host{lookup: os.LookupEnv, root: fstest.MapFS{
		"proc/driver/nvidia/gpus/0000:17:00.0/information": {}, "proc/driver/nvidia/gpus/0000:65:00.0/information": {},
	}}
}

// parse runs the command without running a job.
func parse(t *testing.T, args ...string) (o *options, command []string, err error) {
	t.Helper()
	cmd := newCommand(bare(), func(_ context.Context, got *options, rest []string) error {
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
	o.host = host{}
	want := &options{
		given: map[string]string{}, minNodes: 1, nnodes: 1, nproc: 1, scaleUp: "immediate", role: "default", useEnv: true, backend: "static", grace: 30 * time.Second,
		exitBarrier: 300 * time.Second, maxBackoff: 10 * time.Second, stopSignals: stopSignals, prefix: "[${rank}] ", events: "null",
		onFailure: "restart", replaceTimeout: 30 * time.Second, healthCooldown: 30 * time.Second,
	}
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
	"nproc-per-node":   {"gpu", func(o *options) bool { return o.nproc == 2 }},
	"node-rank":        {"0", func(o *options) bool { return o.nodeRank == 0 }},
	"spares":           {"0", func(o *options) bool { return o.spares == 0 }},
	"role":             {"trainer", func(o *options) bool { return o.role == "trainer" }},
	"local-addr":       {"10.0.0.7", func(o *options) bool { return o.localAddr == "10.0.0.7" && o.master.Addr == "10.0.0.7" }},
	"module":           {"1", func(o *options) bool { return o.module }},
	"no-python":        {"2", func(o *options) bool { return o.noPython }},
	"run-path":         {"true", func(o *options) bool { return o.runPath }},
	"use-env":          {"1", func(o *options) bool { return o.useEnv }},
	"wdir":             {"testdata", func(o *options) bool { return o.workDir == "testdata" }},
	"env":              {"A=b=c", func(o *options) bool { return slices.Equal(o.variables, []string{"A=b=c"}) }},
	"env-file":         {"testdata/variables", func(o *options) bool { return slices.Equal(o.variables, []string{"A=b c", "B="}) }},
	"standalone":       {"1", func(o *options) bool { return o.standalone }},
	"master-addr":      {"[0:0:0:0:0:0:0:1]", func(o *options) bool { return o.master.Addr == "0:0:0:0:0:0:0:1" }},
	"master-port":      {"1234", func(o *options) bool { return o.master.Port == 1234 }},
	"rdzv-endpoint":    {"[::1]:77", func(o *options) bool { return o.master == rendezvous.Master{Addr: "::1", Port: 77} }},
	"rdzv-backend":     {"c10d", func(o *options) bool { return o.backend == "c10d" }},
	"rdzv-id":          {"job 7", func(o *options) bool { return o.runID == "job 7" }},
	"scale-up":         {"never", func(o *options) bool { return o.scaleUp == "never" }},
	"rdzv-conf":        {` rank='0', "join_timeout"="900",is_host=False,`, func(o *options) bool { return o.conf["rank"] == "0" && o.conf["join_timeout"] == "900" }},
	"rdzv-token-file":  {"testdata/token", func(o *options) bool { return o.token == "0123456789abcdef" }},
	"max-restarts":     {"3", func(o *options) bool { return o.maxRestarts == 3 }},
	"shutdown-timeout": {"0.5", func(o *options) bool { return o.grace == 500*time.Millisecond }},
	"signals-to-handle": {"SIGTERM, usr1", func(o *options) bool {
		return slices.Equal(o.stopSignals, []os.Signal{syscall.SIGTERM, syscall.SIGUSR1})
	}},
	"on-failure":               {"replace", func(o *options) bool { return o.onFailure == "replace" }},
	"hang-timeout":             {"1.5", func(o *options) bool { return o.hangTimeout == 1500*time.Millisecond }},
	"timeout":                  {"1.5", func(o *options) bool { return o.timeout == 1500*time.Millisecond }},
	"replace-timeout":          {"2.5", func(o *options) bool { return o.replaceTimeout == 2500*time.Millisecond }},
	"health-check":             {"nvidia-smi -L", func(o *options) bool { return o.healthCheck == "nvidia-smi -L" }},
	"health-cooldown":          {"0.5", func(o *options) bool { return o.healthCooldown == time.Second/2 }},
	"preflight":                {"disk, port", func(o *options) bool { return len(o.preflight) == 2 && o.preflight["disk"] && o.preflight["port"] }},
	"max-restart-backoff":      {"0", func(o *options) bool { return o.maxBackoff == 0 }},
	"exit-barrier-timeout":     {"7", func(o *options) bool { return o.exitBarrier == 7*time.Second }},
	"monitor-interval":         {"0.1", func(*options) bool { return true }},
	"start-method":             {"forkserver", func(*options) bool { return true }},
	"log-dir":                  {"logs", func(o *options) bool { return o.logDir == "logs" }},
	"redirects":                {"0:3,10:1", func(o *options) bool { return o.redirects.For(10) == launcher.Stdout }},
	"tee":                      {"2", func(o *options) bool { return o.tee.For(4) == launcher.Stderr }},
	"local-ranks-filter":       {"0, 12", func(o *options) bool { return len(o.show) == 2 && o.show[0] && o.show[12] }},
	"duplicate-stdout-filters": {"loss,a,,b", func(o *options) bool { return slices.Equal(o.stdoutFilters, []string{"loss", "a,b"}) }},
	"duplicate-stderr-filters": {"Error", func(o *options) bool { return slices.Equal(o.stderrFilters, []string{"Error"}) }},
	"log-line-prefix":          {"", func(o *options) bool { return o.prefix == "" }},
	"timestamps":               {"1", func(o *options) bool { return o.timestamps }},
	"log-max-size":             {"2MiB", func(o *options) bool { return o.logMaxSize == 2<<20 }},
	"log-keep":                 {"4", func(o *options) bool { return o.logKeep == 4 }},
	"logs-specs":               {"default", func(*options) bool { return true }},
	"status-addr":              {":8080", func(o *options) bool { return o.statusAddr == "127.0.0.1:8080" }},
	"event-log":                {"events.jsonl", func(o *options) bool { return o.eventLog == "events.jsonl" }},
	"event-log-handler":        {"console", func(o *options) bool { return o.events == "console" }},
	"numa-binding":             {"core-complex", func(o *options) bool { return o.numa == "core-complex" }},
	"omp-num-threads":          {"auto", func(o *options) bool { return o.threads == autoThreads }},
	"virtual-local-rank":       {"1", func(o *options) bool { return o.virtualLocalRank }},
	"worker-tls":               {"1", func(o *options) bool { return o.workerTLS }},
	"dry-run":                  {"1", func(o *options) bool { return o.dryRun }},
	"json":                     {"1", func(o *options) bool { return o.json }},
	"config":                   {"testdata/job.yaml", func(o *options) bool { return o.nproc == 3 && o.role == "trainer" }},
}

// needed are the flags without which another means nothing.
var needed = map[string][]string{"json": {"--dry-run"}, "log-keep": {"--log-max-size=1M"}, "replace-timeout": {"--on-failure=replace"},
	"health-cooldown": {"--health-check=true"}}

func TestEveryFlagEverySpelling(t *testing.T) {
	if err := os.Chmod("testdata/token", 0o600); err != nil { // git keeps no more of a mode than x
		t.Fatal(err)
	}
	for _, f := range table {
		good, ok := accepted[f.name]
		if !ok {
			t.Errorf("--%s is not tested", f.name)
			continue
		}
		ways := map[string][]string{
			"dashes":      {"--" + f.name + "=" + good.value, "x"},
			"underscores": {"--" + strings.ReplaceAll(f.name, "-", "_") + "=" + good.value, "x"},
			"abbreviated": {"--" + shortest(f) + "=" + good.value, "x"},
		}
		if f.value != "" {
			ways["apart"] = []string{"--" + f.name, good.value, "x"}
		} else {
			ways["switch"] = []string{"--" + f.name, "x"}
		}
		switch {
		case f.short != "" && f.value == "":
			ways["short"] = []string{"-" + f.short, "x"}
		case f.short != "":
			ways["short"] = []string{"-" + f.short + good.value, "x"}
		}
		if f.name != "config" {
			file := filepath.Join(t.TempDir(), "job.yaml")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%s: %q\n", strings.ReplaceAll(f.name, "-", "_"), good.value), 0o600); err != nil {
				t.Fatal(err)
			}
			ways["config"] = []string{"--config=" + file, "x"}
		}
		for way, args := range ways {
			if o, command, err := parse(t, append(slices.Clone(needed[f.name]), args...)...); err != nil || !good.holds(o) || !slices.Equal(command, []string{"x"}) {
				t.Errorf("%s %q: %+v, %q, %v", way, args, o, command, err)
			}
		}
		t.Run(f.env(), func(t *testing.T) {
			t.Setenv(f.env(), good.value)
			if o, _, err := parse(t, append(slices.Clone(needed[f.name]), "x")...); err != nil || !good.holds(o) {
				t.Errorf("%s=%s: %+v, %v", f.env(), good.value, o, err)
			}
		})
	}
}

// shortest returns the shortest beginning of a flag's name that means no other flag: of torchrun's, if it is one.
func shortest(f flag) string {
	for n := 1; n < len(f.name); n++ {
		clear := true
		for _, other := range table {
			if other.name != f.name && (f.own || !other.own) && strings.HasPrefix(other.name, f.name[:n]) {
				clear = false
			}
		}
		if clear && !strings.HasPrefix("help", f.name[:n]) && !strings.HasPrefix("version", f.name[:n]) {
			return f.name[:n]
		}
	}
	return f.name
}

// refused are bad values for every flag. An empty list: every text is good.
var refused = map[string][]string{
	"nnodes":                   {"", "banana", "0", "0:1", "2:1", "4:2", "2:20:30", "-1", "1.5", "65537", "1:2"},
	"nproc-per-node":           {"", "banana", "0", "-1", "gppu", "cpus", "1e3", "xpu", "99999999999999999999"},
	"node-rank":                {"", "-1", "first", "1"},
	"role":                     {" ", "a\nb"},
	"local-addr":               {"a b", "a/b", "\x00"},
	"wdir":                     {"", "a\nb"},
	"env":                      {"=secret", "RANK=3", "GORUN_TOKEN=secret", "a b=secret", "TORCHELASTIC_TIMER_FILE=x", "THERE_IS_NO_SUCH_VARIABLE"},
	"env-file":                 {"testdata", "testdata/none"},
	"module":                   {"", "maybe"},
	"no-python":                {"", "yes please"},
	"run-path":                 {"", "path"},
	"use-env":                  {"", "env"},
	"standalone":               {"", "on and off"},
	"master-addr":              {"", "a/b", "[::1", "h h", "h:1", "1::2::3"},
	"master-port":              {"", "http", "-1", "65536"},
	"rdzv-endpoint":            {":77", "h:p", "h:1:2:", "h:70000"},
	"rdzv-backend":             {"", "statc", "zookeeper", "C10D"},
	"rdzv-id":                  {" ", "a\tb"},
	"rdzv-conf":                {"timout=3", "timeout=soon", "rank", "rank=-1", "store_type=disk", "is_host=perhaps", "=3"},
	"rdzv-token-file":          {"", "/nonexistent", "/dev/null"},
	"scale-up":                 {"", "always", "Never"},
	"max-restarts":             {"", "-1", "many", "1.5"},
	"shutdown-timeout":         {"", "-1", "NaN", "Inf", "30s"},
	"signals-to-handle":        {"", "SIGTREM", "15", "SIGKILL", "SIGTERM,,SIGINT", "SIGCHLD"},
	"on-failure":               {"", "replaces", "Restart"},
	"timeout":                  {"", "-1", "soon", "1e7"},
	"hang-timeout":             {"", "-1", "0.5", "NaN", "1e99"},
	"replace-timeout":          {"", "-1", "NaN"},
	"max-restart-backoff":      {"", "-1", "soon"},
	"spares":                   {"", "-1", "one", "1"},
	"health-check":             {" ", "a\x00b"},
	"health-cooldown":          {"", "-1", "soon"},
	"preflight":                {"", "disc", "disk,", "disk;port"},
	"exit-barrier-timeout":     {"", "-1", "never"},
	"monitor-interval":         {"", "0", "-1", "often"},
	"start-method":             {"", "thread", "frok"},
	"log-dir":                  {" ", "a\x00b"},
	"redirects":                {"", "4", "0:4", "0:1,0:2", "a:1", "3,3", "1:"},
	"tee":                      {"", "both", "0:"},
	"local-ranks-filter":       {"0,,1", "a", "-1", "0-3"},
	"duplicate-stdout-filters": {"a\x00"},
	"duplicate-stderr-filters": {"\x00"},
	"log-line-prefix":          {},
	"timestamps":               {"", "maybe"},
	"log-max-size":             {"", "0", "-1", "1X", "M", "1KM", "99999999T", "big"},
	"log-keep":                 {"", "0", "-1", "all"},
	"logs-specs":               {"", "nope", "defalt"},
	"event-log-handler":        {"", "file", "consol"},
	"status-addr":              {"", ":", ":http", ":65536", "host", "a b:1", "1:2:3"},
	"event-log":                {"", " ", "a\x00b"},
	"numa-binding":             {"", "core", "nodes", "exlusive"},
	"omp-num-threads":          {"", "0", "-1", "atuo"},
	"virtual-local-rank":       {"", "virtual"},
	"worker-tls":               {"", "encrypted"},
	"dry-run":                  {"", "wet"},
	"json":                     {"", "yaml"},
	"config":                   {"", " ", "a\x00b"},
}

// TestEveryBadValue: one line that says where the value came from, and what is wanted; exit code 2.
func TestEveryBadValue(t *testing.T) {
	for i := range table {
		f := &table[i]
		bad, ok := refused[f.name]
		if !ok {
			t.Errorf("--%s: no bad values are tested", f.name)
		}
		for _, text := range bad {
			for _, from := range []string{"--" + f.name, f.env(), f.alias} {
				if from == "" {
					continue
				}
				vs := newValues()
				if strings.HasPrefix(from, "--") {
					vs[i].texts = []string{text}
				}
				h := bare()
				h.lookup = func(name string) (string, bool) { return text, name == from }
				o, err := vs.options(h)
				if err == nil || o != nil || exitCode(err) != 2 {
					t.Errorf("%s=%q: accepted: %v", from, text, err)
					continue
				}
				said := err.Error()
				shown := quote(text)
				if f.repeats { // not what may be a secret
					shown = quote(strings.Split(text, "=")[0])
				}
				if !strings.HasPrefix(said, from+"="+shown+": ") || strings.ContainsAny(said, "\n\r\x00") {
					t.Errorf("%s=%q: the error does not say so in a line: %q", from, text, said)
				}
			}
		}
		near := "--" + f.name[:len(f.name)-1] + "q"
		if _, _, err := parse(t, near+"=1", "x"); err == nil || !strings.Contains(err.Error(), "did you mean --"+f.name+"?") {
			t.Errorf("%s: %v", near, err)
		}
		for _, choice := range f.choices {
			slip := choice[:len(choice)-1]
			if _, err := strconv.Atoi(choice); err == nil || slices.Contains(f.choices, slip) {
				continue
			}
			if err := f.set(defaults(bare()), slip); err == nil || !strings.Contains(err.Error(), "(did you mean ") {
				t.Errorf("--%s=%s: %v", f.name, slip, err)
			}
		}
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

// TestPlainEtcd: one warning where others may read what goes to an etcd.
func TestPlainEtcd(t *testing.T) {
	for args, warns := range map[string]bool{
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j x":                                         true,
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=localhost --rdzv-id=j x":                                 false,
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=localhost,h --rdzv-id=j x":                               true,
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j --rdzv-conf=protocol=https x":              false,
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j --rdzv-conf=protocol=https --worker-tls x": false,
		"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j --rdzv-token-file=testdata/token x":        false,
		"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-token-file=testdata/token --worker-tls x":       false,
		"--nnodes=1 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j x":                                         false,
	} {
		o, _, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if list := o.warnings(nil); (len(list) == 1) != warns {
			t.Errorf("%s: warns %q", args, list)
		}
	}
}

// TestWorkerTLSOnOneNode: one warning where no worker sends anything to another machine.
func TestWorkerTLSOnOneNode(t *testing.T) {
	for args, want := range map[string][]string{
		"--worker-tls x":   {"--worker-tls=1 has no effect: the job has one node, and its workers send each other nothing over a network"},
		"--worker-tls=0 x": nil,
		"--nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-token-file=testdata/token --worker-tls x": nil,
	} {
		o, _, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if list := o.warnings(nil); !slices.Equal(list, want) {
			t.Errorf("%s: warns %q, want %q", args, list, want)
		}
	}
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
		{"--nproc-per-node=banana x", "--nproc-per-node=banana: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc_per_node 0 x", "--nproc-per-node=0: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc-per-node=-1 x", "--nproc-per-node=-1: want a positive number, auto, cpu, gpu or xpu"},
		{"--nproc-per-node= x", `--nproc-per-node="": want a positive number, auto, cpu, gpu or xpu`},
		{"--nnodes=2:1 x", "--nnodes=2:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=2:20:30 x", "--nnodes=2:20:30: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=0:1 x", "--nnodes=0:1: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX"},
		{"--nnodes=1:2 x", "--nnodes=1:2: a range needs an etcd over which the nodes meet, as with --rdzv-backend=embedded --rdzv-endpoint=node0:29400"},
		{"--nnodes=2 x", "--nnodes=2: where is node 0? Give every node the same address, as in --master-addr=node0 --master-port=29500"},
		{"--nnodes=2 --master-addr=h --node-rank=2 x", "--node-rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--nnodes=2 --master-addr=h --rdzv-conf=rank=2 x", "--rdzv-conf=rank=2: node ranks are 0 to 1, since --nnodes is 2"},
		{"--node-rank=-1 x", "--node-rank=-1: want a number from 0 to 65535"},
		{"--master-addr=a/b x", "--master-addr=a/b: want a host name or an IP address"},
		{"--master-addr=node0:29500 x", "--master-addr=node0:29500: want a host name or an IP address, without a port"},
		{"--master-port=65536 x", "--master-port=65536: want a number from 0 to 65535"},
		{"--rdzv-endpoint=:77 x", "--rdzv-endpoint=:77: want host:port"},
		{"--rdzv-endpoint=h:p x", "--rdzv-endpoint=h:p: want host:port, with a port from 0 to 65535"},
		{"--rdzv-backend=statc x", "--rdzv-backend=statc: want static, c10d, etcd, etcd-v2, etcd-v3 or embedded (did you mean static?)"},
		{"--nnodes=2 --rdzv-backend=c10d x", "--rdzv-backend=c10d: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:29400"},
		{"--nnodes=2 --rdzv-backend=etcd x", "--rdzv-backend=etcd: where do the nodes meet? Give every node the same endpoint, as in --rdzv-endpoint=node0:2379"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h x", "--rdzv-backend=etcd: an etcd may serve many jobs: give this one the same name on every node, as in --rdzv-id=train17"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a/b x", "--rdzv-id=a/b: want a name of at most 128 bytes, without a slash"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 x", `--rdzv-endpoint=localhost:0: endpoint "localhost:0": port "0": want a number from 1 to 65535`},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h x", "--rdzv-endpoint=h: anybody who reached this endpoint could start programs: give every node the same secret, as in --rdzv-token-file=token (create it with umask 077; openssl rand -hex 32 >token)"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j --worker-tls x", "--worker-tls=1: the workers' secret would be sent unencrypted, given --rdzv-endpoint=h: use --rdzv-conf=protocol=https, or gorun etcd with a token"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=localhost --rdzv-id=j --worker-tls x", "--worker-tls=1: the workers' secret would be sent unencrypted, given --rdzv-endpoint=localhost: use --rdzv-conf=protocol=https, or gorun etcd with a token"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h,i x", "--rdzv-endpoint=h,i: 2 endpoints: want one, or three of which any one may fail"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h,h,i x", `--rdzv-endpoint=h,h,i: endpoint h:29400 occurs twice in "h,h,i"`},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=http://h:1 x", `--rdzv-endpoint=http://h:1: endpoint "http://h:1": want a host and a port without a scheme, as in "h:1"`},
		{"--nnodes=2:3 --node-rank=3 --rdzv-backend=c10d --rdzv-endpoint=localhost x", "--node-rank=3: node ranks are 0 to 2, since --nnodes is 3"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=ssl_cert=a,ca_cert=b x", "--rdzv-conf=ssl_cert=a,ca_cert=b: give both ssl_cert and ssl_cert_key, or neither"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=ca_cert=b x", "--rdzv-conf=ca_cert=b: want all of ca_cert, ssl_cert and ssl_cert_key, or none"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=username=u,password_file=p x", "--rdzv-conf=username=u,password_file=p: an etcd that gorun hosts has no users; use --rdzv-token-file"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=store_type=file x", "--rdzv-conf=store_type=file: nodes meet over the network; leave out store_type"},
		{"--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-conf=protocol=https x", "--rdzv-conf=protocol=https: gorun chooses the protocol of an etcd that it hosts; leave out protocol"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a --rdzv-conf=username=u x", "--rdzv-conf=username=u: give both username and password_file, or neither"},
		{"--nnodes=2 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=a --rdzv-conf=protocol=http,ca_cert=c x", "--rdzv-conf=protocol=http,ca_cert=c: certificates need protocol=https"},
		{"--scale-up=imediate x", "--scale-up=imediate: want immediate, on-restart or never (did you mean immediate?)"},
		{"--rdzv-conf=timout=3 x", "--rdzv-conf=timout=3: no such key timout (did you mean timeout?): want rank, timeout, read_timeout, join_timeout, last_call_timeout, " +
			"close_timeout, heartbeat_timeout, keep_alive_interval, keep_alive_max_attempt, store_type, is_host, use_libuv, protocol, ssl_cert, ssl_cert_key, ca_cert, etcd_prefix, ttl, after_end, username or password_file"},
		{"--rdzv-conf=timeout=soon x", "--rdzv-conf=timeout=soon: timeout: want a number of seconds, 0 or more"},
		{"--rdzv-conf=rank x", "--rdzv-conf=rank: rank has no value: want key=value pairs separated by commas"},
		{"--rdzv-token-file=/nonexistent x", "--rdzv-token-file=/nonexistent: cannot read the token: open /nonexistent: no such file or directory"},
		{"--rdzv-token-file=/dev/null x", "--rdzv-token-file=/dev/null: want a token of 16 to 1024 visible ASCII characters, such as the output of openssl rand -hex 32"},
		{"--rdzv-token-file=" + long + " x", "--rdzv-token-file=" + long + ": want a token of 16 to 1024 visible ASCII characters, such as the output of openssl rand -hex 32"},
		{"--standalone=maybe x", "--standalone=maybe: want 1 or 0"},
		{"--standalone --nnodes=2 x", "--nnodes=2: --standalone is for one node"},
		{"--max-restarts=-1 x", "--max-restarts=-1: want a number from 0 to 1073741824"},
		{"--shutdown-timeout=-1 x", "--shutdown-timeout=-1: want a number of seconds, 0 or more"},
		{"--shutdown-timeout=NaN x", "--shutdown-timeout=NaN: want a number of seconds, 0 or more"},
		{"--monitor-interval=0 x", "--monitor-interval=0: want a positive number of seconds"},
		{"--start-method=thread x", "--start-method=thread: want spawn, fork or forkserver"},
		{"--role=\t x", `--role="\t": want a name`},
		{"-r 4 x", "--redirects=4: want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2"},
		{"--tee=0:9 x", `--tee=0:9: "0:9" in "0:9": want 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank such as 0:3,1:2`},
		{"--nprocs-per-node=2 x", "unknown flag --nprocs-per-node: did you mean --nproc-per-node?"},
		{"--master_adr=h x", "unknown flag --master_adr: did you mean --master-addr?"},
		{"--frobnicate x", "unknown flag --frobnicate: gorun --help lists all"},
		{"-x", "unknown flag -x: gorun --help lists all"},
		{"-nproc_per_node=2 x", "unknown flag -nproc_per_node: did you mean --nproc-per-node?"},
		{"-mx x", "unknown flag -x: gorun --help lists all"},
		{"--n=1 x", "--n may be --nnodes or --nproc-per-node or --node-rank or --no-python or --numa-binding: write more of it"},
		{"--log=x x", "--log may be --log-dir or --logs-specs: write more of it"},
		{"--rdzv=x x", "--rdzv may be --rdzv-endpoint or --rdzv-backend or --rdzv-id or --rdzv-conf: write more of it"},
		{"--module --no-python x", "--module=1 and --no-python=1: leave out one of them"},
		{"-m --run-path x", "--module=1 and --run-path=1: leave out one of them"},
		{"--json x", "--json=1: --json needs --dry-run"},
		{"--log-keep=3 x", "--log-keep=3: has no effect without --log-max-size"},
		{"--replace-timeout=3 x", "--replace-timeout=3: has no effect without --on-failure=replace"},
		{"--on-failure=replace --replace-timeout=0 x", "--replace-timeout=0: want more than 0 seconds"},
		{"--on-failure=replace --nnodes=2 --node-rank=0 --master-addr=a x", "--on-failure=replace: static nodes do not learn that a worker of another node has failed: " +
			"have the nodes meet over an etcd, as with --rdzv-backend=embedded --rdzv-endpoint=node0:29400"},
		{"--signals-to-handle=SIGTREM x", "--signals-to-handle=SIGTREM: no signal SIGTREM (did you mean SIGTERM?): want names separated by commas, such as SIGTERM,SIGUSR1"},
		{"--nproc-per-node=gppu x", "--nproc-per-node=gppu: want a positive number, auto, cpu, gpu or xpu (did you mean gpu?)"},
		{"--nproc-per-node=xpu x", "--nproc-per-node=xpu: there is no such device on this machine: want a number, or cpu for one worker on each CPU"},
		{"--nnodes", "--nnodes needs a value, as in --nnodes=N: number of nodes: N, or MIN:MAX if nodes may come and go (default 1)"},
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
	if _, _, err := parse(t, "x"); err == nil || err.Error() != "PET_NPROC_PER_NODE=many: want a positive number, auto, cpu, gpu or xpu" {
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

func TestAbbreviations(t *testing.T) {
	for written, want := range map[string]string{
		"redirect": "redirects", "te": "tee", "max": "max-restarts", "nproc_per": "nproc-per-node", "log_d": "log-dir",
		"log": "log", "log-l": "log-line-prefix", "rdzv_t": "rdzv-token-file", "dr": "dry-run", "j": "json", "e": "event-log-handler", "he": "help", "": "",
	} {
		if got := fullName(written); got != want {
			t.Errorf("--%s is --%s, want --%s", written, got, want)
		}
	}
}

func TestEmptyWhereTorchrunHasIt(t *testing.T) {
	if _, _, err := parse(t, "--rdzv-endpoint=", "--rdzv-conf=", "--local-addr=", "--local-ranks-filter=", "--duplicate-stdout-filters=", "x"); err != nil {
		t.Error(err)
	}
}

func TestOneNodeMeetsNobody(t *testing.T) {
	o, _, err := parse(t, "--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=elsewhere:29400", "--rdzv-id=7", "x")
	if err != nil || o.master != (rendezvous.Master{}) || o.runID != "7" {
		t.Errorf("got %+v, %v", o, err)
	}
}

func TestStrays(t *testing.T) {
	got := unknownVariables([]string{"PET_NPROC_PER_NDOE=4", "PET_NNODES=1", "PET_SHOP=open", "NNODES=3"})
	want := []string{"PET_NPROC_PER_NDOE is not the default of any flag: did you mean PET_NPROC_PER_NODE?"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
			vs := values{{flag: &table[i], texts: []string{text}}}
			if table[i].value == "FILE" {
				continue // it would be read
			}
			_, err := vs.options(host{lookup: func(string) (string, bool) { return "", false }, root: fstest.MapFS{}})
			if err != nil && (strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 2000) {
				t.Errorf("--%s: not one line: %q", table[i].name, err)
			}
		}
	})
}

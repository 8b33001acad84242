package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
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
	want := &options{flags: flags{
		given: map[string]string{}, minNodes: 1, nnodes: 1, nproc: 1, scaleUp: "immediate", role: "default", useEnv: true, backend: "static", grace: 30 * time.Second,
		exitBarrier: 300 * time.Second, maxBackoff: 10 * time.Second, prefix: "[${rank}] ", pty: "auto", numa: "auto",
		stopSignals: []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT},
		onFailure:   "restart", replaceTimeout: 30 * time.Second, healthCooldown: 30 * time.Second,
	}}
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
	"preload":          {"torch,numpy", func(o *options) bool { return slices.Equal(o.preload, []string{"torch", "numpy"}) }},
	"preload-strict":   {"true", func(o *options) bool { return o.preloadStrict }},
	"python":           {"/usr/bin/python3", func(o *options) bool { return o.python == "/usr/bin/python3" }},
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
	"stdin":                    {"none", func(o *options) bool { return o.noStdin }},
	"no-stdin":                 {"1", func(o *options) bool { return o.noStdin }},
	"pty":                      {"yes", func(o *options) bool { return o.pty == "yes" }},
	"log-max-size":             {"2MiB", func(o *options) bool { return o.logMaxSize == 2<<20 }},
	"log-keep":                 {"4", func(o *options) bool { return o.logKeep == 4 }},
	"logs-specs":               {"default", func(*options) bool { return true }},
	"status-addr":              {":8080", func(o *options) bool { return o.statusAddr == "127.0.0.1:8080" }},
	"event-log":                {"events.jsonl", func(o *options) bool { return o.eventLog == "events.jsonl" }},
	"numa-binding":             {"core-complex", func(o *options) bool { return o.numa == "core-complex" }},
	"omp-num-threads":          {"auto", func(o *options) bool { return o.threads == autoThreads }},
	"virtual-local-rank":       {"1", func(o *options) bool { return o.virtualLocalRank }},
	"worker-tls":               {"1", func(o *options) bool { return o.workerTLS }},
	"dry-run":                  {"1", func(o *options) bool { return o.dryRun }},
	"json":                     {"1", func(o *options) bool { return o.json }},
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
		if f.def != "" {
			if err := f.set(defaults(bare()), f.def); err != nil {
				t.Errorf("--%s: the default is refused: %v", f.name, err)
			}
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

// TestHelpIsShort: gorun --help fits on 80 lines, and has each of its flags at a place of its own.
func TestHelpIsShort(t *testing.T) {
	if n := strings.Count(help(), "\n"); n > 80 {
		t.Errorf("the help has %d lines", n)
	}
	names := make(map[int]string)
	for _, f := range table {
		if other := names[f.often]; other != "" && f.often > 0 {
			t.Errorf("--%s and --%s are at the same place of the help", f.name, other)
		}
		names[f.often] = f.name
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

// TestWarnings: options that have no effect or are unsafe get one warning each.
func TestWarnings(t *testing.T) {
	const (
		etcd       = "--nnodes=2 --rdzv-backend=etcd --rdzv-id=j --rdzv-endpoint="
		hosted     = "--nnodes=1:2 --rdzv-backend=c10d --rdzv-endpoint=h --rdzv-token-file=testdata/token"
		static     = "--nnodes=2 --node-rank=0 "
		plain      = "connections to the etcd at "
		onlyHere   = "no other machine reaches node 0 at "
		ineffTLS   = "--worker-tls=1 has no effect: the job has one node, and its workers send each other nothing over a network"
		ineffAddr  = "--master-addr=h has no effect: if nodes meet over etcd, "
		standalone = "--standalone overrides --rdzv-id"
	)
	for args, want := range map[string]string{
		etcd + "h": plain + "h ", etcd + "localhost,h": plain, etcd + "localhost": "",
		etcd + "h --rdzv-conf=protocol=https": "", etcd + "h --rdzv-conf=protocol=https --worker-tls": "",
		etcd + "h --rdzv-token-file=testdata/token":                    "",
		"--nnodes=1 --rdzv-backend=etcd --rdzv-endpoint=h --rdzv-id=j": "",
		hosted: "", hosted + " --worker-tls": "", hosted + " --master-addr=h": ineffAddr, hosted + " --master-addr=localhost": "--master-addr=",
		"--worker-tls": ineffTLS, "--worker-tls=0": "", "--standalone --rdzv-id=j": standalone,
		static + "--master-addr=localhost": onlyHere, static + "--master-addr=127.0.1.1": onlyHere, static + "--rdzv-endpoint=[::1]:7": onlyHere,
		static + "--master-addr=h": "", "--nnodes=1 --master-addr=localhost": "", "--nnodes=1 --rdzv-endpoint=[::1]:7": "",
	} {
		o, _, err := parse(t, append(strings.Fields(args), "x")...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := strings.Join(o.warnings(nil), "; "); !strings.HasPrefix(got, want) || (got == "") != (want == "") || strings.Contains(got, "; --") {
			t.Errorf("%s: warns %q, want %q", args, got, want)
		}
	}
}

func TestWhatBelongsToTheProgram(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"x", "--nnodes=9", "-t", "--", "--help"}, []string{"x", "--nnodes=9", "-t", "--", "--help"}},
		{[]string{"x", "--", "--lr", "3"}, []string{"x", "--lr", "3"}},
		{[]string{"--tee", "3", "x", "--", "--", "y"}, []string{"x", "--", "y"}},
		{[]string{"x", "--lr", "3", "--", "y"}, []string{"x", "--lr", "3", "--", "y"}},
		{[]string{"x", "--"}, []string{"x"}},
		{[]string{"--", "x", "--", "--", "y"}, []string{"x", "--", "--", "y"}},
		{[]string{"--", "x", "--", "y"}, []string{"x", "--", "y"}},
		{[]string{"--tee", "3", "x", "", "a\nb"}, []string{"x", "", "a\nb"}},
		{[]string{"--", "-x"}, []string{"-x"}},
	} {
		if _, got, err := parse(t, c.args...); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.args, got, err, c.want)
		}
	}
}

// TestFlagsAfterTheProgram: gorun warns if a flag of its own is the program's argument, unless it may well be meant so.
func TestFlagsAfterTheProgram(t *testing.T) {
	for args, warns := range map[string]bool{
		"train.py --nproc-per-node 2": true, "train.py --lr 3 --nproc_per_node=2": true, "train.py --standalone": true,
		"--nproc-per-node=2 train.py --nproc-per-node 2": false, "train.py --nnodes 2 --timeout 3 -n 2": false,
		"-m torch.distributed.run --nproc-per-node 2 x": false, "env A=b bin/gorun --nproc-per-node 2 x": false, "x a -- --standalone": false,
		"accelerate launch --standalone x": false,
	} {
		o, command, err := parse(t, strings.Fields(args)...)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if got := o.misplaced(command); (got != "") != warns {
			t.Errorf("%s: warns %q, want %t", args, got, warns)
		}
	}
}

func TestSeveralNodes(t *testing.T) {
	for _, c := range []struct {
		args   string
		rank   int
		master rendezvous.Master
	}{
		{"--master-addr=h --node_rank=0", 0, rendezvous.Master{Addr: "h", Port: 29500}},
		{"--master-addr=h --master-port=7 --node-rank=1", 1, rendezvous.Master{Addr: "h", Port: 7}},
		{"--rdzv-endpoint=h:7 --master-addr=other --node-rank=0", 0, rendezvous.Master{Addr: "h", Port: 7}},
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
		"log": "log", "log-l": "log-line-prefix", "rdzv_t": "rdzv-token-file", "dr": "dry-run", "j": "json", "eve": "event-log", "he": "help", "": "",
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
	got := unknownVariables([]string{"PET_NPROC_PER_NDOE=4", "PET_NNODES=1", "PET_SHOP=open", "NNODES=3", "PET_CONFIG=job.toml"})
	want := []string{
		"PET_NPROC_PER_NDOE is not the default of any flag: did you mean PET_NPROC_PER_NODE?",
		"PET_CONFIG is ignored: gorun has no such flag any more",
	}
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
			vs := values{table[i].name: {[]string{text}, "--" + table[i].name}}
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

package cli

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// refused are bad values for every flag. An empty list: every text is good.
var refused = map[string][]string{
	"nnodes":                   {"", "banana", "0", "0:1", "2:1", "4:2", "2:20:30", "-1", "1.5", "65537", "1:2"},
	"nproc-per-node":           {"", "banana", "0", "-1", "gppu", "cpus", "1e3", "xpu", "99999999999999999999"},
	"node-rank":                {"", "-1", "first", "1"},
	"role":                     {" ", "a\nb"},
	"local-addr":               {"a b", "a/b", "\x00"},
	"wdir":                     {"", "a\nb"},
	"env":                      {"=secret", "RANK=3", "GORUN_TOKEN=secret", "a b=secret", "THERE_IS_NO_SUCH_VARIABLE"},
	"env-file":                 {"testdata", "testdata/none"},
	"module":                   {"", "maybe"},
	"no-python":                {"", "yes please"},
	"python":                   {"", "a\nb"},
	"preload":                  {"", "a,,b", "a, b"},
	"preload-strict":           {"", "maybe"},
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
	"stdin":                    {"", "1", "NONE", "/dev/null"},
	"no-stdin":                 {"", "maybe"},
	"pty":                      {"", "1", "YES", "aut"},
	"log-max-size":             {"", "0", "-1", "1X", "M", "1KM", "99999999T", "big"},
	"log-keep":                 {"", "0", "-1", "all"},
	"logs-specs":               {"", "nope", "defalt"},
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
				line := newCommandLine(nil)
				if strings.HasPrefix(from, "--") {
					line[i].texts = []string{text}
				}
				h := bare()
				h.lookup = func(name string) (string, bool) { return text, name == from }
				o, err := line.values(h.lookup).options(h)
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
			if _, err := strconv.Atoi(choice); err == nil || len(slip) < 2 || slices.Contains(f.choices, slip) {
				continue
			}
			if err := f.set(defaults(bare()), slip); err == nil || !strings.Contains(err.Error(), "(did you mean ") {
				t.Errorf("--%s=%s: %v", f.name, slip, err)
			}
		}
	}
}

func TestLocalAddr(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.0/8": "127.0.0.1", "node7": "node7", "203.0.113.7": "203.0.113.7", "[fd00::7]": "fd00::7", // not of this machine, and told as they are
	} {
		o, _, err := parse(t, "--nnodes=2", "--node-rank=1", "--master-addr=node0", "--local-addr="+text, "x")
		if err != nil || o.localAddr != want || o.node().Reach() != want {
			t.Errorf("%s: got %q, %v, want %q", text, o.localAddr, err, want)
		}
	}
	for text, want := range map[string]string{
		"203.0.113.0/24": "--local-addr=203.0.113.0/24: 203.0.113.0/24 contains no address of this machine; this machine has ",
		"10.1/16":        `--local-addr=10.1/16: "10.1/16" is not a prefix such as 10.1.0.0/16; this machine has `,
	} {
		if _, _, err := parse(t, "--local-addr="+text, "x"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

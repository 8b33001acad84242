package cli

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorun/gorun/cmd/gorun/internal/job"
)

// planOf returns the plan that follows from a command line.
func planOf(t *testing.T, args string) *job.Plan {
	t.Helper()
	o, command, err := parse(t, append(strings.Fields(args), "sh")...)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	p, err := o.plan(command, os.Stdout, os.Stderr)
	if err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return p
}

const (
	overEtcd  = "--nnodes=2 --rdzv-backend=embedded --rdzv-endpoint=localhost "
	twoStatic = "--nnodes=2 --node-rank=0 --master-addr=node0 "
)

// TestPlanOfConf: what torchrun's keys come to, and gorun's own.
func TestPlanOfConf(t *testing.T) {
	type want struct {
		ttl, join time.Duration
		prefix    string
	}
	for text, want := range map[string]want{
		"":                         {},
		"ttl=3.5":                  {ttl: 3500 * time.Millisecond},
		"ttl=0.1":                  {ttl: time.Second},
		"keep_alive_interval=5":    {ttl: 15 * time.Second},
		"keep_alive_max_attempt=2": {},
		"keep-alive-interval=2,keep-alive-max-attempt=4": {ttl: 8 * time.Second},
		"keep_alive_interval=2,ttl=30":                   {ttl: 30 * time.Second},
		"timeout=900":                                    {join: 15 * time.Minute},
		"timeout=900,join_timeout=60":                    {join: time.Minute},
		"etcd_prefix=/team":                              {prefix: "/team/"},
		"etcd-prefix='/team/'":                           {prefix: "/team/"},
	} {
		p := planOf(t, overEtcd+"--rdzv-conf="+text)
		ttl, join := cmp.Or(want.ttl, 10*time.Second), cmp.Or(want.join, 10*time.Minute)
		if c := p.Etcd; c.Lease != ttl || p.Agent.Lease != ttl || c.JoinTimeout != join || p.Agent.ReportTimeout != join || c.Prefix != want.prefix {
			t.Errorf("%s: ttl %v, join timeout %v, prefix %q, want %v", text, c.Lease, c.JoinTimeout, c.Prefix, want)
		}
	}
}

// TestPlanOfSettings: what the nodes of a job must have the same is told to the rendezvous, which refuses others.
func TestPlanOfSettings(t *testing.T) {
	for args, want := range map[string][3]string{
		"":                     {"false", "restart", "0s"},
		"--worker-tls":         {"true", "restart", "0s"},
		"--on-failure=replace": {"false", "replace", "0s"},
		"--hang-timeout=60":    {"false", "restart", "1m0s"},
	} {
		s := planOf(t, args+" "+overEtcd).Etcd.Settings
		if got := [3]string{s["worker_tls"], s["on_failure"], s["hang_timeout"]}; got != want || s["gorun"] != version {
			t.Errorf("%s: the settings are %v", args, s)
		}
	}
}

// TestPlanOfToken: nodes have the token that they were given, or on this machine the user's own, which a dry run does not make.
func TestPlanOfToken(t *testing.T) {
	const given = " --rdzv-token-file=testdata/token"
	for args, want := range map[string]struct {
		own    bool
		secret string
	}{
		overEtcd: {own: true}, overEtcd + given: {secret: "0123456789abcdef"},
		twoStatic: {}, twoStatic + given: {secret: "0123456789abcdef"}, "--nnodes=2 --node-rank=0 --master-addr=localhost": {own: true},
		"--nnodes=1": {}, overEtcd + "--rdzv-conf=ca_cert=a,ssl_cert=b,ssl_cert_key=c": {},
	} {
		p := planOf(t, args)
		secret := p.Static.Token
		if p.Etcd != nil {
			secret = p.Etcd.Secret
		}
		if p.OwnToken != want.own || secret != want.secret {
			t.Errorf("%s: own %t, secret %q", args, p.OwnToken, secret)
		}
	}
}

// TestPlanOfEnvironment: workers inherit what gorun has, but for what it says to each, and several of them have one thread each.
func TestPlanOfEnvironment(t *testing.T) {
	t.Setenv("GORUN_COMM_ADDR", "")
	t.Setenv("A", "b")
	for _, c := range []struct {
		threads string // inherited; empty: none
		args    string
		want    string
	}{
		{"", "", "A=b"},
		{"", "--nproc-per-node=2", "A=b OMP_NUM_THREADS=1"},
		{"8", "--nproc-per-node=2", "A=b OMP_NUM_THREADS=8"},
		{"8", "--omp-num-threads=3", "A=b OMP_NUM_THREADS=3"},
		{"", "--env=A=c", "A=c"},
		{"", twoStatic, "A=b"},
		{"", twoStatic + "--local-addr=localhost", "A=b GORUN_COMM_ADDR=localhost"},
		{"", twoStatic + "--local-addr=203.0.113.7", "A=b GORUN_COMM_ADDR=203.0.113.7"}, // not of this machine
		{"", "--local-addr=127.0.0.1", "A=b"},
	} {
		_ = os.Unsetenv("OMP_NUM_THREADS")
		if c.threads != "" {
			t.Setenv("OMP_NUM_THREADS", c.threads)
		}
		got := slices.DeleteFunc(slices.Clone(planOf(t, c.args).Agent.Environ), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return !slices.Contains([]string{"A", "OMP_NUM_THREADS", "GORUN_COMM_ADDR"}, name)
		})
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %s", c.args, got, c.want)
		}
	}
}

// TestPlanOfDevices: with --virtual-local-rank, each worker sees a device of its own.
func TestPlanOfDevices(t *testing.T) {
	for _, c := range []struct {
		visible string // "-": the variable is not set
		bare    bool   // the machine has none
		nproc   string
		want    []string // nil: an error
	}{
		{"-", true, "2", []string{"0", "1"}}, // numbers all the same
		{"3,5,7", true, "2", []string{"3", "5"}},
		{"3", true, "2", nil},
		{"-", false, "2", []string{"0", "1"}},
		{"-", false, "3", nil},
	} {
		h := bare()
		h.lookup = func(name string) (string, bool) { return c.visible, name == "CUDA_VISIBLE_DEVICES" && c.visible != "-" }
		if c.bare {
			h.root = fstest.MapFS{}
		}
		v := make(values)
		v.orElse("nproc-per-node", c.nproc)
		v.orElse("virtual-local-rank", "1")
		o, err := v.options(h)
		if err != nil {
			t.Fatal(err)
		}
		p, err := o.plan([]string{"sh"}, os.Stdout, os.Stderr)
		if c.want == nil && exitCode(err) != 2 || c.want != nil && (err != nil || p.Agent.DeviceVariable != "CUDA_VISIBLE_DEVICES" || !slices.Equal(p.Agent.Devices, c.want)) {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}

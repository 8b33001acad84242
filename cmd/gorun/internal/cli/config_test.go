package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// inFolder runs the test in an empty folder with this config file.
func inFolder(t *testing.T, config string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("job.yaml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigPrecedence(t *testing.T) {
	inFolder(t, "max_restarts: 3\ntee: 3\nenv: {A: file, B: file}\n")
	t.Setenv("PET_MAX_RESTARTS", "1")
	t.Setenv("PET_ENV", "C=environment")
	t.Setenv("PET_SHUTDOWN_TIMEOUT", "7")
	check := func(restarts int, variables []string, settings []string, args ...string) {
		t.Helper()
		o, _, err := parse(t, append(args, "x")...)
		if err != nil || o.maxRestarts != restarts || !slices.Equal(o.variables, variables) || !slices.Equal(o.settings, settings) || o.grace != 7*time.Second {
			t.Errorf("%q: %v\n%+v", args, err, o)
		}
	}
	environment := "PET_SHUTDOWN_TIMEOUT=7"
	check(1, []string{"C=environment"}, []string{"PET_ENV=C", "PET_MAX_RESTARTS=1", environment})
	check(3, []string{"A=file", "B=file"}, []string{"job.yaml:3: env=A", "job.yaml:3: env=B", "job.yaml:1: max-restarts=3", environment, "job.yaml:2: tee=3"}, "--config=job.yaml")
	check(5, []string{"A=file", "B=file", "B=line"}, []string{"job.yaml:3: env=A", "job.yaml:3: env=B", environment, "job.yaml:2: tee=3"},
		"--max-restarts=5", "--config", "job.yaml", "--env=B=line")
	t.Setenv("PET_CONFIG", "job.yaml")
	check(3, []string{"A=file", "B=file"},
		[]string{"job.yaml:3: env=A", "job.yaml:3: env=B", "job.yaml:1: max-restarts=3", environment, "job.yaml:2: tee=3", "PET_CONFIG=job.yaml"})
}

func TestConfigForms(t *testing.T) {
	t.Setenv("MINE", "own")
	t.Setenv("PET_ENV_FILE", "none")
	inFolder(t, `
env:
- A=a, b
- MINE
env-file: []
local_ranks_filter:
- 0
- 2
rdzv-conf: {join_timeout: 60, ttl: 5}
use-env: false
`)
	o, _, err := parse(t, "--config=job.yaml", "x")
	switch {
	case err != nil:
		t.Fatal(err)
	case !slices.Equal(o.variables, []string{"A=a, b", "MINE=own"}), !o.show[0] || !o.show[2] || len(o.show) != 2,
		o.conf["join_timeout"] != "60" || o.conf["ttl"] != "5", o.useEnv:
		t.Errorf("got %+v", o)
	}
}

// TestConfigOnPage: gorun takes the config file in docs/environment.md.
func TestConfigOnPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "environment.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	config, _, found := strings.Cut(block, "```")
	inFolder(t, config)
	o, _, err := parse(t, "--config=job.yaml", "x")
	if err != nil || !found || len(o.settings) != 6 || !o.timestamps || o.maxBackoff != 2500*time.Millisecond {
		t.Errorf("%v\n%s\n%+v", err, config, o)
	}
}

// TestConfigErrors: one line that says where, and exit code 2.
func TestConfigErrors(t *testing.T) {
	t.Setenv("PET_NNODES", "") // wrong, but overridden
	for config, want := range map[string]string{
		"\nnproc: 2":                `job.yaml:2: no flag is named "nproc": did you mean nproc-per-node?`,
		"max-restart: 2":            `job.yaml:1: no flag is named "max-restart": did you mean max-restarts?`,
		"maxrestarts: 2":            `job.yaml:1: no flag is named "maxrestarts": did you mean max-restarts?`,
		"num_machines: 2":           `job.yaml:1: no flag is named "num-machines": gorun --help lists all`,
		"hosts: a,b":                `job.yaml:1: hosts is a flag of gorun launch: start the job with gorun launch, or leave it out`,
		"<<: {tee: 3}":              `job.yaml:1: no flag is named "<<": gorun --help lists all`,
		"m: true":                   `job.yaml:1: no flag is named "m": gorun --help lists all`,
		"config: other.yaml":        `job.yaml:1: config: a config file cannot name another`,
		"help: true":                `job.yaml:1: help: it is for the command line`,
		"program: ./train":          `job.yaml:1: program: the program and its arguments are on the command line, behind gorun's flags`,
		"token: secret":             `job.yaml:1: token: a config file holds no secrets: put the token into a file that only you can read, and its name here, as rdzv-token-file`,
		"GORUN_TOKEN: secret":       `job.yaml:1: GORUN-TOKEN: a config file holds no secrets: put the token into a file that only you can read, and its name here, as rdzv-token-file`,
		"env:\n  GORUN_TOKEN: x":    `job.yaml:2: env=GORUN_TOKEN: gorun itself sets GORUN_TOKEN for the workers`,
		"env:\n- A=1\n- B C=secret": `job.yaml:3: env="B C": "B C" cannot be the name of a variable: want NAME=VALUE`,
		"tee: 3\ntee: 1":            `job.yaml:2: "tee" is there twice: first in line 1`,
		"nnodes: 1\nnnodes_: 1":     `job.yaml:2: no flag is named "nnodes-": did you mean nnodes?`,
		"nnodes: two":               `job.yaml:1: nnodes=two: want a number of nodes from 1 to 65536, or MIN:MAX with MIN at most MAX`,
		"standalone: yes":           `job.yaml:1: standalone=yes: want 1 or 0`,
		"timeout: 1h":               `job.yaml:1: timeout=1h: want a number of seconds, 0 or more`,
		"nnodes: [1, 2]":            `job.yaml:1: nnodes: want a single value: put it in quotes if it begins with [`,
		"role: {a: b}":              `job.yaml:1: role: want a value, not names with values`,
		"env-file: {a: b}":          `job.yaml:1: env-file: want a value, not names with values`,
		"rdzv-conf: {a: 'b,c=d'}":   `job.yaml:1: rdzv-conf: a=b,c=d: a value in a list cannot have a comma: write the list as one text, as on the command line`,
		"role:":                     `job.yaml:1: a value is missing: write one, or "" for an empty text`,
		"module: 1\nrun-path: 1":    `job.yaml:1: module=1 and job.yaml:2: run-path=1: leave out one of them`,
		"json: 1":                   `job.yaml:1: json=1: --json needs --dry-run`,
		"a: [":                      `job.yaml:1: this is not YAML: did not find expected node content`,
		strings.Repeat("#", 1<<21):  `job.yaml: the file is longer than 1048576 bytes`,
	} {
		t.Run("", func(t *testing.T) {
			inFolder(t, config)
			if strings.Contains(want, "nnodes") {
				t.Setenv("PET_NNODES", "1")
			} else {
				_ = os.Unsetenv("PET_NNODES")
			}
			o, _, err := parse(t, "--config=job.yaml", "x")
			if err == nil || o != nil || err.Error() != want || exitCode(err) != 2 {
				t.Errorf("%.60q: exit code %d\n%v\nwant %s", config, exitCode(err), err, want)
			}
		})
	}
	inFolder(t, "")
	for file, want := range map[string]string{"none.yaml": "no such file or directory", ".": "is a directory", "": "no such file or directory"} {
		if _, _, err := parse(t, "--config="+file, "x"); err == nil || err.Error() != "--config="+quote(file)+": "+want || exitCode(err) != 2 {
			t.Errorf("%q: %v", file, err)
		}
	}
	t.Setenv("PET_CONFIG", "none.yaml")
	if _, _, err := parse(t, "x"); err == nil || err.Error() != "PET_CONFIG=none.yaml: no such file or directory" {
		t.Errorf("in the environment: %v", err)
	}
}

// TestConfigOverridden: nobody checks a value that the command line overrides.
func TestConfigOverridden(t *testing.T) {
	inFolder(t, "nnodes: two\n")
	if o, _, err := parse(t, "--config=job.yaml", "--nnodes=1", "x"); err != nil || o.settings != nil {
		t.Errorf("%v, %+v", err, o)
	}
}

func TestLaunchConfig(t *testing.T) {
	launch := func(args ...string) (string, error) {
		cmd := launchCommand(bare(), nil, nil)
		var out strings.Builder
		cmd.SetArgs(append(args, "./train"))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.Execute()
		return out.String(), err
	}
	inFolder(t, "hosts: [a:8, b:8]\nrsh: ./rsh\nrdzv-id: train\nmax-restarts: 3\nenv: {A: 1}\ntimeout: 60\n")
	t.Setenv("PET_CONFIG", "job.yaml")
	t.Setenv("PET_MAX_RESTARTS", "1")
	got, err := launch("--dry-run", "--timeout=5")
	if want := "a: gorun --nnodes=2 --nproc-per-node=8 --node-rank=0 --rdzv-backend=embedded --rdzv-id=train '--rdzv-endpoint=(chosen at the start)' " +
		"--max-restarts=3 --timeout=5 -- ./train\n"; err != nil || !strings.Contains(got, want) || !strings.Contains(got, "./rsh a ") {
		t.Errorf("%v\n%s\nwant %s", err, got, want)
	}
	for config, want := range map[string]string{
		"hosts: a\nhostfile: b":  "gorun launch: job.yaml:1: hosts and job.yaml:2: hostfile: leave out one of them",
		"hosts: a:x":             "gorun launch: job.yaml:1: hosts=a:x: ",
		"hosts: ''":              `job.yaml:1: hosts="": want a value that is not empty`,
		"hosts: a\nnode-rank: 0": "job.yaml:2: node-rank=0: gorun launch numbers the nodes, in the order of the hosts",
		"hosts: [a]\nhost: b":    `job.yaml:2: no flag is named "host": did you mean hosts?`,
		"copy: perhaps":          "job.yaml:1: copy=perhaps: want 1 or 0",
	} {
		if err := os.WriteFile("job.yaml", []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := launch("--dry-run"); err == nil || !strings.HasPrefix(err.Error(), want) || exitCode(err) != 2 {
			t.Errorf("%q: %v, want %s\n%s", config, err, want, got)
		}
	}
}

// TestFlagsOfLaunch: if a config file for gorun has a flag of gorun launch, the error says so.
func TestFlagsOfLaunch(t *testing.T) {
	plain := newCommand(bare(), nil)
	var own []string
	launchCommand(bare(), nil, nil).Flags().VisitAll(func(f *pflag.Flag) {
		if other := plain.Flags().Lookup(f.Name); other == nil || other.Name != f.Name {
			own = append(own, f.Name)
		}
	})
	if !slices.Equal(own, ofLaunch) {
		t.Errorf("flags of gorun launch alone are %q, and ofLaunch is %q", own, ofLaunch)
	}
}

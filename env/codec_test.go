package env

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// names is the contract; a change here is a change for every worker in every language.
var names = []string{
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
	"ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
	"GORUN_ROUND", "GORUN_TOKEN", "GORUN_TLS", "GORUN_STORE_ADDR", "GORUN_ROUND_SOCKET", "GORUN_PROGRESS_FILE",
}

func TestNames(t *testing.T) {
	var got []string
	for _, kv := range (Worker{}).Environ() {
		name, _, _ := strings.Cut(kv, "=")
		got = append(got, name)
	}
	if !slices.Equal(got, names) {
		t.Errorf("variables:\n got %q\nwant %q", got, names)
	}
}

func TestDocListsEveryVariable(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^//\t([A-Z_]+) `).FindAllStringSubmatch(string(src), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, names) {
		t.Errorf("the table in the package comment:\n got %q\nwant %q", got, names)
	}
}

func TestEnviron(t *testing.T) {
	w := Worker{
		Rank: 5, LocalRank: 1, WorldSize: 8, LocalWorldSize: 4, GroupRank: 1, GroupWorldSize: 2,
		RoleName: "trainer", RoleRank: 5, RoleWorldSize: 8, MasterAddr: "10.0.0.7", MasterPort: 29500,
		RestartCount: 1, MaxRestarts: 3, RunID: "job", UseAgentStore: false, ErrorFile: "/l/5/error.json", TLS: true,
		Round: 2, Token: "s3cret", StoreAddr: "10.0.0.7:4000", RoundSocket: "/tmp/round/1", ProgressFile: "/tmp/progress/1",
	}
	want := strings.Fields(`RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 GROUP_WORLD_SIZE=2
		ROLE_NAME=trainer ROLE_RANK=5 ROLE_WORLD_SIZE=8 MASTER_ADDR=10.0.0.7 MASTER_PORT=29500
		TORCHELASTIC_RESTART_COUNT=1 TORCHELASTIC_MAX_RESTARTS=3 TORCHELASTIC_RUN_ID=job
		TORCHELASTIC_USE_AGENT_STORE=False TORCHELASTIC_ERROR_FILE=/l/5/error.json
		GORUN_ROUND=2 GORUN_TOKEN=s3cret GORUN_TLS=True GORUN_STORE_ADDR=10.0.0.7:4000 GORUN_ROUND_SOCKET=/tmp/round/1 GORUN_PROGRESS_FILE=/tmp/progress/1`)
	if got := w.Environ(); !slices.Equal(got, want) {
		t.Errorf("Environ:\n got %q\nwant %q", got, want)
	}
}

// lookupIn answers from "NAME=value" entries, as os.LookupEnv does from the environment.
func lookupIn(environ []string) func(string) (string, bool) {
	values := make(map[string]string)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestRoundTrip(t *testing.T) {
	below := func(t *rapid.T, name string, least int) (n, size int) {
		size = rapid.IntRange(least, maxInt).Draw(t, name+" size")
		return rapid.IntRange(0, max(size-1, 0)).Draw(t, name), size
	}
	word := rapid.StringMatching(`[!-~]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		w := Worker{
			RoleName:      rapid.String().Draw(t, "role"),
			MasterAddr:    rapid.SampledFrom([]string{"localhost", "10.1.2.3", "::1", "fe80::1%eth0"}).Draw(t, "addr"),
			MasterPort:    rapid.IntRange(1, 65535).Draw(t, "port"),
			RestartCount:  rapid.IntRange(0, maxInt).Draw(t, "restarts"),
			MaxRestarts:   rapid.IntRange(0, maxInt).Draw(t, "max restarts"),
			RunID:         rapid.String().Draw(t, "id"),
			UseAgentStore: rapid.Bool().Draw(t, "store"),
			TLS:           rapid.Bool().Draw(t, "tls"),
			ErrorFile:     rapid.String().Draw(t, "error file"),
			Round:         rapid.IntRange(0, maxInt).Draw(t, "round"),
			Token:         word.Draw(t, "token"),
			RoundSocket:   rapid.String().Draw(t, "socket"),
			ProgressFile:  rapid.String().Draw(t, "progress file"),
			StoreAddr:     rapid.SampledFrom([]string{"", "h:1", "[::1]:65535"}).Draw(t, "store addr"),
		}
		w.Rank, w.WorldSize = below(t, "rank", 1)
		w.LocalRank, w.LocalWorldSize = below(t, "local rank", 0)
		w.GroupRank, w.GroupWorldSize = below(t, "group rank", 0)
		w.RoleRank, w.RoleWorldSize = below(t, "role rank", 0)
		got, err := Parse(lookupIn(w.Environ()))
		if err != nil || got != w {
			t.Fatalf("Parse(Environ(w)) = %q, %v\nwant %q", got.Environ(), err, w.Environ())
		}
	})
}

// required is the least that Parse accepts.
var required = map[string]string{"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "h", "MASTER_PORT": "29500"}

func lookupWith(name, value string) func(string) (string, bool) {
	values := maps.Clone(required)
	values[name] = value
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func TestParseByHand(t *testing.T) {
	got, err := Parse(lookupWith("RANK", "3"))
	want := Worker{Rank: 3, WorldSize: 4, MasterAddr: "h", MasterPort: 29500}
	if err != nil || got != want {
		t.Errorf("Parse = %q, %v, want %q", got.Environ(), err, want.Environ())
	}
}

func TestParseMissing(t *testing.T) {
	for name, text := range map[string]string{
		"RANK":        "env: RANK is not set: want an integer from 0 to WORLD_SIZE-1; start the program with gorun --nproc-per-node N PROGRAM",
		"WORLD_SIZE":  "env: WORLD_SIZE is not set: want an integer of at least 1; start the program with gorun --nproc-per-node N PROGRAM",
		"MASTER_ADDR": "env: MASTER_ADDR is not set: want a host name or an IP address; start the program with gorun --nproc-per-node N PROGRAM",
		"MASTER_PORT": "env: MASTER_PORT is not set: want an integer from 1 to 65535; start the program with gorun --nproc-per-node N PROGRAM",
	} {
		values := maps.Clone(required)
		delete(values, name)
		got, err := Parse(func(name string) (string, bool) { v, ok := values[name]; return v, ok })
		var e *Error
		if !errors.As(err, &e) || !e.Missing || e.Name != name || err.Error() != text || got != (Worker{}) {
			t.Errorf("without %s: %q, %v\nwant %s", name, got.Environ(), err, text)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, value, text string }{
		{"RANK", "banana", "env: RANK=banana: want an integer from 0 to WORLD_SIZE-1"},
		{"RANK", "", `env: RANK="": want an integer from 0 to WORLD_SIZE-1`},
		{"RANK", "-1", "env: RANK=-1: want an integer from 0 to WORLD_SIZE-1"},
		{"RANK", "4", "env: RANK=4: want a number below WORLD_SIZE=4"},
		{"RANK", "99999999999999999999", "env: RANK=99999999999999999999: want an integer from 0 to WORLD_SIZE-1"},
		{"WORLD_SIZE", "0", "env: WORLD_SIZE=0: want an integer of at least 1"},
		{"WORLD_SIZE", "2147483648", "env: WORLD_SIZE=2147483648: want an integer of at least 1"},
		{"LOCAL_WORLD_SIZE", "1.5", "env: LOCAL_WORLD_SIZE=1.5: want an integer of at least 0"},
		{"ROLE_RANK", "x", "env: ROLE_RANK=x: want an integer from 0 to ROLE_WORLD_SIZE-1"},
		{"MASTER_ADDR", "", `env: MASTER_ADDR="": want a host name or an IP address`},
		{"MASTER_ADDR", "a\nb", `env: MASTER_ADDR="a\nb": want a host name or an IP address`},
		{"MASTER_PORT", "0", "env: MASTER_PORT=0: want an integer from 1 to 65535"},
		{"MASTER_PORT", "65536", "env: MASTER_PORT=65536: want an integer from 1 to 65535"},
		{"TORCHELASTIC_RESTART_COUNT", "-2", "env: TORCHELASTIC_RESTART_COUNT=-2: want an integer of at least 0"},
		{"TORCHELASTIC_USE_AGENT_STORE", "yes", "env: TORCHELASTIC_USE_AGENT_STORE=yes: want True or False"},
		{"GORUN_TLS", "1", "env: GORUN_TLS=1: want True or False"},
		{"GORUN_STORE_ADDR", "nowhere", "env: GORUN_STORE_ADDR=nowhere: want host:port"},
		{"GORUN_STORE_ADDR", "h:0", "env: GORUN_STORE_ADDR=h:0: want host:port"},
		{"GORUN_TOKEN", "s3 cret", "env: GORUN_TOKEN=(hidden): want at most 1024 printable ASCII characters without spaces"},
		{"GORUN_TOKEN", strings.Repeat("s", 1025), "env: GORUN_TOKEN=(hidden): want at most 1024 printable ASCII characters without spaces"},
		{"RANK", strings.Repeat("7", 1000), "env: RANK=" + strings.Repeat("7", 64) + "...: want an integer from 0 to WORLD_SIZE-1"},
	} {
		got, err := Parse(lookupWith(c.name, c.value))
		if err == nil || err.Error() != c.text || got != (Worker{}) {
			t.Errorf("%s=%.40q: %v\nwant %s", c.name, c.value, err, c.text)
		}
	}
}

func TestFromOS(t *testing.T) {
	want := Worker{Rank: 1, WorldSize: 2, MasterAddr: "::1", MasterPort: 80, Round: 7}
	for _, kv := range want.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	if got, err := FromOS(); err != nil || got != want {
		t.Errorf("FromOS = %q, %v, want %q", got.Environ(), err, want.Environ())
	}
}

// FuzzParse puts the same hostile value into every variable in turn: no panic, a one-line error that names the
// variable and never shows a token, or a Worker that survives the round trip.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "1", "-1", "3", "True", "h:1", "[::1]:2", "\x00", "9223372036854775808", "٣"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, field := range fields {
			w, err := Parse(lookupWith(field.name, value))
			if err != nil {
				text := err.Error()
				if strings.ContainsAny(text, "\n\r") || len(text) > 400 || !strings.HasPrefix(text, "env: ") {
					t.Errorf("%s=%q: not one short line: %q", field.name, value, text)
				}
				if field.secret && !strings.Contains(text, "GORUN_TOKEN=(hidden)") {
					t.Errorf("the error shows the secret: %q", text)
				}
				continue
			}
			if again, err := Parse(lookupIn(w.Environ())); err != nil || again != w {
				t.Errorf("%s=%q: round trip gives %q, %v, want %q", field.name, value, again.Environ(), err, w.Environ())
			}
		}
	})
}

func TestMerge(t *testing.T) {
	got := Merge([]string{"A=1", "B=2", "A=3", "C"}, []string{"B=4=5", "D="})
	if want := []string{"A=3", "C", "B=4=5", "D="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

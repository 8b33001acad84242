package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestParseEnvFile(t *testing.T) {
	lookup := func(name string) (string, bool) { return "gorun's " + name, name == "MINE" }
	for text, want := range map[string][]string{
		"":                                   nil,
		"A=1\nB=x y \n":                      {"A=1", "B=x y "},
		"A=1\r\n\r\nB=2":                     {"A=1", "B=2"},
		"# comment\n  #another\n\t A=1 # no": {"A=1 # no"},
		"A=\"1\"\nB='$C'\nC==":               {`A="1"`, "B='$C'", "C=="},
		"MINE\n":                             {"MINE=gorun's MINE"},
		"\uFEFFA=é":                          {"A=é"},
		"A=1\nA=2":                           {"A=1", "A=2"},
	} {
		if got, err := parseEnvFile([]byte(text), lookup); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"A=1\n\n=2\n":                          `line 3: "" cannot be the name of a variable`,
		"A=1\nexport B=secret":                 `line 2: "export B" cannot be the name of a variable`,
		"# x\nWORLD_SIZE=2":                    "line 2: gorun itself sets WORLD_SIZE",
		"A=sec\x00ret":                         "line 1: the value of A has a NUL byte",
		"A\x00=secret":                         "line 1: ",
		"A=1\nMINE\nYOURS\n":                   "line 3: YOURS: there is no such variable here: want NAME=VALUE",
		"A=\xff":                               "not UTF-8",
		strings.Repeat("secret ", 1000) + "=1": `"secret secret secret secret secret secre" cannot be the name`,
		strings.Repeat("A=1\n", maxEnvFile):    "longer than 1048576 bytes",
	} {
		got, err := parseEnvFile([]byte(text), lookup)
		if err == nil || !strings.Contains(err.Error(), want) || got != nil {
			t.Errorf("%.80q: %q, %v; want an error with %q", text, got, err, want)
		}
		if err != nil && !strings.HasPrefix(text, "secret") && strings.Contains(err.Error(), "secret") {
			t.Errorf("%.80q: the error shows the value: %v", text, err)
		}
	}
}

func FuzzParseEnvFile(f *testing.F) {
	f.Add([]byte("A=1\n# x\nB"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseEnvFile(text, func(string) (string, bool) { return "", false })
		if err != nil && (list != nil || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("%q, %q", list, err)
		}
		for _, kv := range list {
			if i := strings.Index(kv, "="); i < 1 || strings.ContainsAny(kv, "\x00\n") || strings.ContainsAny(kv[:i], " \t") {
				t.Fatalf("%q", kv)
			}
		}
	})
}

func TestVariables(t *testing.T) {
	t.Setenv("OMP_NUM_THREADS", "1")
	t.Setenv("PET_ENV", "A=old\nC=3")
	o, _, err := parse(t, "--env=A=1", "--env=A=2", "--env-file=testdata/variables", "--env", "OMP_NUM_THREADS=7", "--nproc-per-node=2", "x")
	if err != nil {
		t.Fatal(err)
	}
	got := o.environ([]string{"A=0", "Z=9", "OMP_NUM_THREADS=1"}, 0)
	if want := []string{"Z=9", "B=", "A=2", "OMP_NUM_THREADS=7", "PYTHONFAULTHANDLER=1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := o.environ([]string{"PYTHONFAULTHANDLER="}, 0); !slices.Contains(got, "PYTHONFAULTHANDLER=") || slices.Contains(got, "PYTHONFAULTHANDLER=1") {
		t.Errorf("%q: the user has switched it off", got)
	}
	if o, _, err = parse(t, "x"); err != nil || !slices.Equal(o.variables, []string{"A=old", "C=3"}) {
		t.Errorf("PET_ENV: %q, %v", o.variables, err)
	}
	if o, _, err = parse(t, "--env=OMP_NUM_THREADS", "x"); err != nil || !slices.Equal(o.variables, []string{"OMP_NUM_THREADS=1"}) {
		t.Errorf("gorun's own value: %q, %v", o.variables, err)
	}
	// The workers' variable counts, not gorun's own.
	if o, _, err = parse(t, "--nproc-per-node=gpu", "--env=CUDA_VISIBLE_DEVICES=1", "x"); err != nil || o.nproc != 1 {
		t.Errorf("one GPU is visible: %+v, %v", o, err)
	}
	if _, _, err = parse(t, "--env=OMP_NUM_THREADS=2", "--omp-num-threads=3", "x"); err == nil || !strings.Contains(err.Error(), "leave out one of them") {
		t.Errorf("the number of threads twice: %v", err)
	}
}

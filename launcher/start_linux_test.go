package launcher

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/launcher/guard"
)

func TestWorkersWithProgramsOfTheirOwn(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(exe))
	s, con := spec(t, 3, "exit", "3")
	s.Workers[1].Argv = []string{"/bin/sh", "-c", `echo "$0 $1"; exit 4`, "an", "argument"}
	s.Workers[2].Argv = []string{"./" + filepath.Base(exe), "exit", "5"}
	for _, e := range exits(t, start(t, s)) {
		if e.Code() != 3+e.LocalRank {
			t.Errorf("%+v", e)
		}
	}
	if con.String() != "[1] an argument\n" {
		t.Error(con)
	}
	s.Argv = nil // not needed if every worker has its own
	s.Workers = s.Workers[1:]
	exits(t, start(t, s))
	s.Workers[1].Argv = []string{"/nowhere/x"}
	if _, err := Start(t.Context(), s); err == nil || err.Error() != "/nowhere/x: no such program" {
		t.Error(err)
	}
}

func TestRequestCarriesEveryProgramOnce(t *testing.T) {
	s := Spec{Argv: []string{"a", "b"}, Workers: make([]WorkerSpec, 5)}
	s.Workers[2].Argv = []string{"a b"}
	s.Workers[3].Argv = []string{"a", "b"}
	s.Workers[4].Argv = []string{"a b"}
	req := newRequest(&s, []int{0, 1, 2, 3, 4})
	if len(req.Programs) != 2 {
		t.Fatalf("%+v", req)
	}
	for i, want := range []int{0, 0, 1, 0, 1} {
		if req.Workers[i].Program != want {
			t.Errorf("local rank %d has program %d, want %d", i, req.Workers[i].Program, want)
		}
	}
}

// What every worker gets is the concatenation of what is sent, and what they share is sent once.
func TestRequestCarriesSharedEnvironmentOnce(t *testing.T) {
	word := rapid.StringMatching(`[A-C]=[0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		inherited := rapid.SliceOf(word).Draw(t, "inherited")
		s := Spec{Argv: []string{"a"}, Workers: make([]WorkerSpec, rapid.IntRange(1, 4).Draw(t, "workers"))}
		for i := range s.Workers {
			s.Workers[i].Env = slices.Concat(inherited, rapid.SliceOfN(word, 0, 3).Draw(t, "own"))
		}
		var all []int
		for i := range s.Workers {
			all = append(all, i)
		}
		req := newRequest(&s, all)
		if !bytes.HasPrefix(req.Env, guard.Pack(inherited)) {
			t.Fatalf("only %q is shared of %q", req.Env, inherited)
		}
		for i, w := range req.Workers {
			if got := slices.Concat(req.Env, w.Env); !bytes.Equal(got, guard.Pack(s.Workers[i].Env)) {
				t.Fatalf("local rank %d gets %q, want %q", i, got, s.Workers[i].Env)
			}
		}
	})
}

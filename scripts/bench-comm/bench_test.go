package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gorun/gorun/env/testing/testkit"
)

// TestMain runs as a rank if its arguments say so: contenders start this program again.
func TestMain(m *testing.M) {
	if isRank, err := rank(os.Args[1:]); isRank {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testkit.OwnSettings(m).Run())
}

// TestQuick measures with all peers that are there, and judges no time.
func TestQuick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	figures, chart := filepath.Join(dir, "figures.json"), filepath.Join(dir, "chart.svg")
	o, err := parseFlags([]string{"-quick", "-install=false", "-sizes", "64K", "-time", "2ms", "-json", figures, "-svg", chart}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	var r report
	if text, err := os.ReadFile(figures); err != nil || json.Unmarshal(text, &r) != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, text := range r.Notes {
		t.Log(text)
	}
	measured := make(map[string]int)
	for _, f := range r.Figures {
		if f.Microseconds <= 0 || len(f.Rounds) != 1 {
			t.Errorf("%+v", f)
		}
		if slices.Contains(allOps, f.Op) {
			measured[f.Contender+" "+f.State]++
		}
	}
	for _, c := range r.Contenders {
		cells := 7 + 1 // operations; barrier. Dirty cells may take no time, by noise.
		troubled := slices.ContainsFunc(r.Notes, func(text string) bool { return strings.HasPrefix(text, c.Name+",") })
		if hot, dirty := measured[c.Name+" hot"], measured[c.Name+" dirty"]; !troubled && (hot != cells || dirty == 0) {
			t.Errorf("%s measured %d hot cells and %d dirty ones, want %d each", c.Name, hot, dirty, cells)
		}
		if text, err := os.ReadFile(chart); err != nil || !bytes.Contains(text, []byte(">"+c.Name+"<")) {
			t.Errorf("the chart lacks %s: %v", c.Name, err)
		}
	}
	if !strings.HasPrefix(out.String(), "# Package comm beside Open MPI, MPICH and gloo\n") {
		t.Error(out.String())
	}
}

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args, want string
	}{
		{"-ops reduce,broad", `unknown operation "broad": want some of ` + strings.Join(allOps, ",")},
		{"-transport pigeon", `unknown transport "pigeon": want some of shm,tcp`},
		{"-sizes 64,1G", `size "1G": want a number`},
		{"-sizes 1KK", `size "1KK": want a number`},
		{"-sizes 72", "size 72: want whole elements of 4 bytes for each of 4 ranks"},
		{"-ranks 1", "1 ranks: want at least 2"},
		{"-rounds 0", "0 rounds of 100ms: want more than none"},
		{"-dirty maybe", `dirty "maybe": want both, no or only`},
		{"all_reduce", `unexpected argument "all_reduce"`},
		{"-colour", "flag provided but not defined: -colour"},
	} {
		if _, err := parseFlags(strings.Fields(test.args), io.Discard); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.args, err, test.want)
		}
	}
	o, err := parseFlags(strings.Fields("-quick -sizes 4K,64,4K -dirty only"), io.Discard)
	if err != nil || o.rounds != 1 || numbers(o.sizes) != "64,4096" || numbers(o.ranks) != "2" || !slices.Equal(o.states, []string{"dirty"}) {
		t.Errorf("%+v, %v", o, err)
	}
	var help strings.Builder
	if _, err := parseFlags([]string{"-h"}, &help); !errors.Is(err, errHelp) || !strings.Contains(help.String(), "-rounds") {
		t.Errorf("%v: %s", err, &help)
	}
}

func TestBusy(t *testing.T) {
	for text, want := range map[string]int{"0.21 3.00 5.00 1/90 7\n": 0, "1.50 0.1 0.1 1/90 7\n": 1, "": 0} {
		if notes := busy(text); len(notes) != want {
			t.Errorf("%q: %q", text, notes)
		}
	}
}

func TestChart(t *testing.T) {
	o, err := parseFlags(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	b := bench{options: o, samples: exampleSamples(t), contenders: []contender{{Name: "comm"}, {Name: "Open MPI"}, {Name: "comm tcp"}}}
	chart := b.report("a machine", nil).chart()
	points := 0
	for d := xml.NewDecoder(strings.NewReader(chart)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, chart)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			points++
		}
	}
	if points != 4 || strings.Contains(chart, "NaN") || strings.Contains(chart, "Inf") {
		t.Errorf("%d points, want 4, all of them numbers:\n%s", points, chart)
	}
	if empty := (report{}).chart(); xml.Unmarshal([]byte(empty), new(struct{})) != nil {
		t.Error(empty)
	}
}

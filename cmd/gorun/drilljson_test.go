package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// json is for programs; the number of nodes and workers is up to the user.
func (d driller) json(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "picture.svg")
	c, stderr, _ := d.command(t, "--json", "--svg="+svg, "--nodes=2", "--nproc-per-node=1", "--on-failure=replace", "--repeat=2", "worker-kill", "scale-down")
	out, err := c.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	if picture, err := os.ReadFile(svg); err != nil || !bytes.HasPrefix(picture, []byte("<svg ")) || !bytes.Contains(picture, []byte("SIGTERM to the agent of node 1")) {
		t.Errorf("%v, the picture is %.100q", err, picture)
	}
	type times struct{ Median, Worst float64 }
	var report struct {
		Results []struct {
			Scenario, Why string
			Policy        string `json:"on_failure"`
			Held, Skipped bool
			Noticed       times `json:"noticed_ms"`
			NewRound      times `json:"new_round_ms"`
			FirstCorrect  times `json:"first_correct_ms"`
			Runs          []struct {
				Fault, Why, Logs string
				Held             bool
				Noticed          float64                               `json:"noticed_ms"`
				NewRound         float64                               `json:"new_round_ms"`
				FirstCorrect     float64                               `json:"first_correct_ms"`
				Leftovers        struct{ Processes, Ports, Files int } `json:"left_over"`
				Timeline         struct {
					Tracks []struct {
						Name  string
						Node  int
						Local *int `json:"local_rank"`
						Spans []struct {
							From       float64 `json:"from_ms"`
							To         float64 `json:"to_ms"`
							State      string
							Pid, Round int
							Rank       *int
						}
					}
				}
			}
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil || len(report.Results) != 2 {
		t.Fatalf("%v, %d results of %s", err, len(report.Results), out)
	}
	for i, fault := range []string{"SIGKILL to a worker of node 1", "SIGTERM to the agent of node 1"} {
		r := report.Results[i]
		if !r.Held || r.Skipped || r.Why != "" || r.Policy != "replace" || len(r.Runs) != 2 || r.Noticed.Median <= 0 ||
			r.FirstCorrect.Worst != max(r.Runs[0].FirstCorrect, r.Runs[1].FirstCorrect) {
			t.Errorf("result %d is %+v\n%s", i, r, stderr)
		}
		for _, run := range r.Runs {
			if run.Fault != fault || !run.Held || run.Why+run.Logs != "" || run.Noticed <= 0 || run.FirstCorrect < run.NewRound || run.NewRound <= 0 {
				t.Errorf("in result %d there is %+v\n%s", i, run, stderr)
			}
			states := make(map[string]bool)
			for _, track := range run.Timeline.Tracks {
				for _, span := range track.Spans {
					states[span.State] = true
				}
			}
			if want := []string{"joining", "computing", "waiting"}; slices.ContainsFunc(want, func(s string) bool { return !states[s] }) {
				t.Errorf("the timeline has the states %v, and lacks one of %q", states, want)
			}
		}
	}
}

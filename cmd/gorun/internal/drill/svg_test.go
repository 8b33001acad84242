package drill

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture in docs")

// TestSVG: the picture in docs is that of the results in testdata, which gorun drill --json has printed.
func TestSVG(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "drill.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Results []Result }
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	golden, got := filepath.Join("..", "..", "..", "..", "docs", "drill.svg"), SVG(report.Results)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/drill.svg is not the picture of testdata/drill.json (go test -update writes it): %v", err)
	}
}

// TestSVGIsXML: whatever the results are, the picture is well-formed, and has no number that is none.
func TestSVGIsXML(t *testing.T) {
	rank := 0
	failed := Result{Scenario: "a<b", Policy: Replace}
	failed.add(Outcome{Why: "no fault yet", Timeline: Timeline{Tracks: []Track{{Name: "etcd & more"}}}})
	short := Result{Scenario: "c", Policy: Restart}
	short.add(Outcome{Fault: `"<kill>"`, Noticed: new(0.0), Timeline: Timeline{Tracks: []Track{{
		Node: new(0), Local: new(0), Spans: []Span{{From: 0, To: 0, State: CutOff, Pid: 1, Rank: &rank}},
	}}}})
	for name, results := range map[string][]Result{
		"nothing": nil, "skipped": {{Skipped: true}}, "failed": {failed}, "short": {short, failed}, "twice": {short, short, short},
	} {
		got := SVG(results)
		for decoder := xml.NewDecoder(bytes.NewReader(got)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, got)
			}
		}
		if text := string(got); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
			t.Errorf("%s: no number in\n%s", name, got)
		}
	}
}

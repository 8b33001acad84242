package workergroup

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAnswers: what happens to a worker to which rounds are sent, at which second, and when it is killed. A check has
// the fault behind a colon, and "lost" if the worker is not connected then.
func TestAnswers(t *testing.T) {
	const cannotEnter = "disconnected from its agent, and has not entered round 2"
	const late3 = "did not enter round 3 within 10s"
	for name, story := range map[string]string{
		"in time":                 "0 sent 2; 9 entered 2; 60 check",
		"just late":               "0 sent 2; 10 check; 10 entered 2; 11 check",
		"late":                    "0 sent 2; 10 check; 11 check: did not enter round 2 within 10s",
		"late again":              "0 sent 2; 10 check; 10 entered 2; 20 sent 3; 30 check; 31 check: " + late3,
		"was stopped":             "0 sent 2; 99 check; 108 check; 109 check; 110 check: did not enter round 2 within 10s",
		"no more time":            "0 sent 2; 6 sent 3; 10 check; 11 check: did not enter round 2 within 10s",
		"answers behind":          "0 sent 2; 6 sent 3; 9 entered 2; 16 check; 17 check: " + late3,
		"answers once for all":    "0 sent 2; 6 sent 3; 9 entered 3; 99 check; 99 wrong 2",
		"suspended":               "0 sent 2; 50 extend 50; 59 check; 60 check; 61 check: did not enter round 2 within 10s",
		"disconnected":            "0 sent 2; 3 cut; 4 check lost: " + cannotEnter,
		"connected again":         "0 sent 2; 3 cut; 4 check; 5 check lost",
		"has entered":             "0 sent 2; 3 entered 2; 4 cut; 9 check lost",
		"disconnected, suspended": "0 sent 2; 3 cut; 9 extend 6; 9 check lost; 10 check lost: " + cannotEnter,
	} {
		t.Run(name, func(t *testing.T) {
			var a unanswered
			begun := time.Now()
			for step := range strings.SplitSeq(story, "; ") {
				step, want, _ := strings.Cut(step, ": ")
				var at, n int
				var do, word string
				_, _ = fmt.Sscan(step, &at, &do, &word) // the last one may be missing
				_, _ = fmt.Sscan(word, &n)
				now := begun.Add(time.Duration(at) * time.Second)
				switch do {
				case "sent":
					a.sent(n, now, 10*time.Second)
				case "entered", "wrong":
					if a.entered(n) != (do == "entered") {
						t.Errorf("%s: does it know of that round? %+v", step, a)
					}
				case "cut":
					a.cut = now
				case "extend":
					a.extend(time.Duration(n) * time.Second)
				case "check":
					if want != "" && a.deadline().After(now) {
						t.Errorf("%s: nobody looks before %v", step, a.deadline().Sub(begun))
					}
					if fault := a.check(now, word != "lost", 10*time.Second); fault != want {
						t.Errorf("%s: %q, want %q", step, fault, want)
					}
				}
			}
		})
	}
}

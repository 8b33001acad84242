package rendezvous_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gorun/gorun/env/death"
	"github.com/gorun/gorun/rendezvous"
)

var stateFile = flag.String("state", "", "the log of a leader at debug level, whose decisions TestReplay makes again; empty: it makes up some")

// TestReplay: what a leader logs of its decisions is all that they depend on. So you can make them again, and step
// through Form:
//
//	LOGLEVEL=debug gorun ... 2>FILE
//	go test ./rendezvous -run TestReplay -v -state FILE
func TestReplay(t *testing.T) {
	if *stateFile == "" {
		rapid.Check(t, replayMadeUp)
		return
	}
	text, err := os.ReadFile(*stateFile)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		i := strings.Index(line, `{"State":`)
		if i < 0 {
			continue
		}
		n++
		d, err := replay(line[i:])
		if err != nil {
			t.Errorf("decision %d: %v", n, err)
		}
		t.Logf("decision %d: close %+v, over %+v, form %+v, %s", n, d.Close, d.Over, d.Form, d.Reason())
	}
	if n == 0 {
		t.Errorf("%s has no decisions: a node logs them with LOGLEVEL=debug while it leads", *stateFile)
	}
}

// replay makes a decision again, from what was logged of it.
func replay(text string) (d rendezvous.Decision, err error) {
	var r rendezvous.Record
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&r); err != nil {
		return d, err
	}
	d = rendezvous.Form(r.State)
	if now, then := fmt.Sprint(rendezvous.Record{Decision: d}), fmt.Sprint(rendezvous.Record{Decision: r.Decision}); now != then {
		return d, fmt.Errorf("it was %s, and is %s", then, now)
	}
	return d, nil
}

func replayMadeUp(t *rapid.T) {
	c := newCluster(rapid.IntRange(1, 2).Draw(t, "min"), 4, 1)
	for range rapid.IntRange(1, 12).Draw(t, "events") {
		key := fmt.Sprint("n", rapid.IntRange(1, 1+c.came).Draw(t, "node"))
		switch what := rapid.SampledFrom([]string{"come", "die", "cut", "fail", "rejoin"}).Draw(t, "event"); {
		case what == "come":
			c.comeFrom(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "host"), -1)
		case what == "rejoin":
			c.rejoin()
		case c.node(key) == nil:
		case what == "die":
			c.die(key)
		case what == "cut":
			c.cut("n1>" + key)
		default:
			f := &rendezvous.Failure{Death: death.Death{ExitCode: 3}, FailedPeer: &death.Peer{Rank: 1}}
			f.Final = rapid.Bool().Draw(t, "final")
			c.report(key, f)
		}
		c.settle(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
		if c.closed != nil {
			return
		}
		if _, err := replay(rendezvous.Record{State: c.s, Decision: rendezvous.Form(c.s)}.String()); err != nil {
			t.Fatal(err)
		}
	}
}

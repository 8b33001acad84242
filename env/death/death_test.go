package death_test

import (
	"encoding/json"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/gorun/gorun/env/death"
)

// TestWords: how a death is told, and what a shell and a resource manager see of it.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		d             death.Death
		want          string
		code          int
		failed, crash bool
	}{
		{death.Death{}, "exit code 0", 0, false, false},
		{death.Death{ExitCode: 3}, "exit code 3", 3, true, false},
		{death.Death{ExitCode: 137}, "exit code 137", 137, true, false},
		{death.Death{ExitCode: -9}, "signal 9 (SIGKILL)", 137, true, true},
		{death.Death{ExitCode: -40}, "signal 40", 168, true, true},
		{death.Death{ExitCode: -15, Stopped: true}, "signal 15 (SIGTERM)", 143, true, false},
		{death.Death{ExitCode: -6}, "signal 6 (SIGABRT)", 134, true, false},
		{death.Death{ExitCode: -13}, "signal 13 (SIGPIPE)", 141, true, false},
		{death.Death{ExitCode: -9, Cause: death.Hang, Why: "it made no progress for 5s"}, "signal 9 (SIGKILL): it made no progress for 5s", 137, true, true},
		{death.Death{ExitCode: 2, Cause: death.Hang, Why: "it made no progress for 5s"}, "exit code 2: it made no progress for 5s", 2, true, true},
		{death.Death{ExitCode: -9, Cause: death.Fault, Why: "did not enter round 2"}, "signal 9 (SIGKILL): it did not enter round 2", 137, true, true},
		{death.Death{ExitCode: 1, Cause: death.Fault, Why: "ended with exit code 0"}, "ended with exit code 0", 1, true, false},
		{death.Death{ExitCode: 1, Cause: death.Revoked, Why: "rank 1 has left"}, "revoked its round: rank 1 has left", 1, true, false},
		{death.Death{ExitCode: -9, Cause: death.GuardLost}, "killed because the guard process of its gang died", 137, true, true},
		{death.Death{Cause: death.Unknown, Why: "its node b/7 is lost"}, "its node b/7 is lost", 0, true, false},
	} {
		if got := c.d.String(); got != c.want || c.d.Code() != c.code || c.d.Failed() != c.failed || c.d.IsCrash() != c.crash {
			t.Errorf("%+v is %q with code %d, failed: %v, crash: %v", c.d, got, c.d.Code(), c.d.Failed(), c.d.IsCrash())
		}
	}
	d := death.Death{Rank: 1, Host: "node-a", ExitCode: -9}
	if got := d.Describe(); got != "rank 1 on node-a: signal 9 (SIGKILL)" || d.Signal() != syscall.SIGKILL {
		t.Errorf("%s, %v", got, d.Signal())
	}
}

// TestNothingIsLost: every field survives the way to another process.
func TestNothingIsLost(t *testing.T) {
	d := death.Death{
		Rank: 5, LocalRank: 1, Host: "node-a", Pid: 4711, ExitCode: -9, At: time.Unix(1700000000, 5).UTC(), Cause: death.Fault, Why: "did not enter round 2",
		OutOfMemory: true, Stopped: true, Interrupt: syscall.SIGTERM, Stderr: []string{"last words"},
	}
	for i := range reflect.TypeFor[death.Death]().NumField() {
		if reflect.ValueOf(d).Field(i).IsZero() {
			t.Errorf("%s is not tested", reflect.TypeFor[death.Death]().Field(i).Name)
		}
	}
	text, err := json.Marshal(d)
	var got death.Death
	if err != nil || json.Unmarshal(text, &got) != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("%s, %v: %+v, want %+v", text, err, got, d)
	}
}
